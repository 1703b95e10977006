/* timelines.h: the streams of a process, their handles, and what the host has seen of each. For
 * order.c.
 *
 * A stream that was destroyed goes on with what was put on it (cudaStreamDestroy): its timeline
 * stays until the host has seen all of that done, or TIMELINES_GONE_MAX of them are there; then the
 * oldest is taken as done. */
#ifndef DDPCHECK_TIMELINES_H
#define DDPCHECK_TIMELINES_H

#include "analyzer/engine.h"

/* The stream that the record names, made known if it is not; never one in a capture. NULL with
 * errno = ENOMEM. */
struct stream_state *timeline_get(struct process *process, const struct record *record);
/* A further timeline: a stream's counterpart in a capture. The caller owns it, and ends it with
 * timeline_free. */
struct stream_state *timeline_new(struct process *process, const struct stream_key *key,
                                  int device);
void timeline_free(struct process *process, struct stream_state *stream);
bool timeline_is_captured(const struct stream_state *stream);
bool timeline_is_of_thread(uint64_t handle); /* cudaStreamPerThread */
/* NULL: gone, and all that was on it is done. */
struct stream_state *timeline_find(const struct process *process, uint64_t timeline);
/* cudaStreamDestroy, or the handle of the record is used again. */
void timeline_end(struct process *process, const struct record *record);
/* Something is about to be put on the stream: orders it with the legacy default stream. 0 or -1
 * (ENOMEM). */
int timeline_join_legacy(struct process *process, struct stream_state *stream);
/* Adds to the clock all that was put on the stream up to now, and what is ahead of that. 0 or -1
 * (ENOMEM). */
int timeline_into(const struct process *process, const struct stream_state *stream,
                  struct clock *clock);
/* The host has seen it done. */
void timeline_seen(struct process *process, const struct place *place);
/* PyTorch's watchdog alone has seen all of the clock done (order.h): it orders nothing yet. */
void timelines_watched(struct process *process, const struct clock *clock);
/* An NCCL operation was issued: what the watchdog had seen done counts from now on. */
void timelines_hand_over(struct process *process);
/* Lets go of streams that are gone and seen to their end. */
void timelines_reap(struct process *process);
/* Takes out of the clock what the host has seen done. */
void timelines_prune(const struct process *process, struct clock *clock);
void timelines_free(struct process *process);

#endif
