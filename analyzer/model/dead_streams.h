/* dead_streams.h: streams that were destroyed, until their handles are given out again. Bounded:
 * the oldest goes. */
#ifndef DDPCHECK_DEAD_STREAMS_H
#define DDPCHECK_DEAD_STREAMS_H

#include "analyzer/engine.h"

/* STREAM records. 0 or -1 (ENOMEM). */
int dead_streams_feed(const struct event *event);
/* The stream lives (notice_stream). */
void dead_streams_revive(struct process *process, uint64_t handle);
/* Where it was destroyed; NULL if it was not. Valid until the next change. */
const struct site *dead_streams_find(const struct process *process, uint64_t handle);
void dead_streams_free(struct process *process);

#endif
