/* progress.h: which operations are issued, started and done, by the GPU's progress words.
 *
 * An operation without a progress slot goes to a slot made up for its stream; it is done when a host wait
 * that covers it has returned. Operations leave the queues as they are done. A queue that gets long
 * (progress that can't be seen) lets go of collectives that all members have issued: nobody can be
 * waiting for a member in one of these. */
#ifndef DDPCHECK_PROGRESS_H
#define DDPCHECK_PROGRESS_H

#include "analyzer/engine.h"

/* An operation was put on `stream`; fills in its place. `launch_clock`, if not NULL, is raised to it unless it is
 * done. 0 or -1 (ENOMEM). */
int progress_issue(struct process *process, struct stream_state *stream, struct operation *operation,
                   struct channel *channel, struct clock *launch_clock);
/* notice_progress. ENGINE_*. */
int progress_feed(struct process *process, const struct record *record);
/* A host wait for all of the clock has returned. 0 or -1 (ENOMEM). */
int progress_reached(struct process *process, const struct clock *clock);
/* Takes out of the clock what the host has seen done. What is done by progress alone stays: by chance it was
 * done in time, and the clock tells what is ordered. */
void progress_prune(struct process *process, struct clock *clock);
/* Whether the host has seen it done, and so all that it issues from now on comes after it. */
bool progress_was_seen(struct process *process, const struct clock_entry *launch);
/* The stream of a made-up slot is gone: so is the slot. */
void progress_forget(struct process *process, uint64_t slot);

/* Walks the operations of a clock that are not done: visit returns 0 to go on, else that is returned. */
int progress_visit(struct process *process, const struct clock *clock,
                   int (*visit)(void *context, const struct pending *pending), void *context);

/* Whether its stream has reached it. */
bool progress_has_started(struct process *process, const struct pending *pending);
/* Walks what must be done before an operation can start: the nearest of each stream that it waits for (these have
 * others ahead of them in turn). visit as above. */
int progress_visit_ahead(struct process *process, const struct pending *pending,
                         int (*visit)(void *context, const struct pending *pending), void *context);
/* Walks the first operations of all streams of the process, at most `most` of each. visit as above. */
int progress_visit_first(struct process *process, uint32_t most,
                         int (*visit)(void *context, const struct pending *pending), void *context);

void progress_free(struct process *process);

#endif
