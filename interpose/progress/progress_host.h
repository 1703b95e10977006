/* progress_host.h: progress slots that the process itself writes, from what NCCL reports of the GPU
 * to its profiler plugin. */
#ifndef DDPCHECK_PROGRESS_HOST_H
#define DDPCHECK_PROGRESS_HOST_H

#include <stdint.h>

/* A channel of the GPU began with the launch. */
void progress_host_started(uint32_t slot, uint64_t launch);
/* A channel has completed it; the launch is done when `channels` are (0: not known, one is
 * enough). Launches of one slot are in order, so a later one that is done makes up for a channel
 * that was not reported. */
void progress_host_done(uint32_t slot, uint64_t launch, uint32_t channels);

/* In the child of a fork: its launches are numbered anew. */
void progress_host_forked(void);

#endif
