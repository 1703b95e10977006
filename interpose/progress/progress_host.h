/* progress_host.h: progress slots that the process itself writes, from what NCCL tells its profiler
 * plugin of the GPU. */
#ifndef DDPCHECK_PROGRESS_HOST_H
#define DDPCHECK_PROGRESS_HOST_H

#include <stdint.h>

/* A channel of the GPU began with the launch. */
void progress_host_started(uint32_t slot, uint64_t launch);
/* A channel is through with it; the launch is done when `channels` are (0: not known, one is
 * enough). Launches of one slot are in order, so a later one that is done makes up for a channel
 * that was not told of. */
void progress_host_done(uint32_t slot, uint64_t launch, uint32_t channels);

#endif
