/* progress.h: which operations are issued, started and done, by the GPU's progress words.
 *
 * Operations wait in the queue of their stream. One is done when its slot's progress has reached
 * it, when a later one on the stream is done, or when a host wait that covers it has returned; one
 * without a slot only by the last two. A queue that gets long (progress that can't be seen) lets go
 * of collectives that all members have issued: nobody can be waiting for a member in one of these.
 * What is done is left in process->passed.operation, with its times, for the engine to hand on. */
#ifndef DDPCHECK_PROGRESS_H
#define DDPCHECK_PROGRESS_H

#include "analyzer/engine.h"

/* An operation was put on its stream. `launch_clock`, if not NULL, is raised to it unless it is
 * done. 0 or -1 (ENOMEM). */
int progress_issue(struct process *process, const struct operation *operation,
                   struct channel *channel, struct clock *launch_clock);
/* notice_progress. ENGINE_*. */
int progress_feed(struct event *event);
/* The host has seen more of the stream done. */
void progress_seen(struct stream_state *stream);
/* The stream ends: so does its queue. */
void progress_forget(struct process *process, struct stream_state *stream);

/* Walks the operations that a clock covers and that are not done: visit returns 0 to go on, else
 * that is returned. */
int progress_visit(struct process *process, const struct clock *clock,
                   int (*visit)(void *context, const struct pending *pending), void *context);

/* Whether its stream has reached it. */
bool progress_has_started(struct process *process, const struct pending *pending);
/* Walks what must be done before an operation can start: the nearest of each stream that it waits
 * for (these have others ahead of them in turn). visit as above. */
int progress_visit_ahead(struct process *process, const struct pending *pending,
                         int (*visit)(void *context, const struct pending *pending), void *context);
/* The same for other work, at a place. */
int progress_visit_before(struct process *process, struct place place,
                          int (*visit)(void *context, const struct pending *pending),
                          void *context);
/* Walks the first operations of all streams of the process, at most `most` of each. visit as above.
 */
int progress_visit_first(struct process *process, uint32_t most,
                         int (*visit)(void *context, const struct pending *pending), void *context);
/* Walks all operations that are kept, also those that are known to be done. */
void progress_visit_all(struct process *process,
                        void (*visit)(void *context, const struct pending *pending), void *context);

void progress_free(struct process *process);

#endif
