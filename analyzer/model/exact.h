/* exact.h: exact times of operations (notice_timed), which come a moment after the progress words
 * say that the operations are done.
 *
 * Until then what is done is held back. What gets no such time, because a later launch of its slot
 * has one or the process ends, keeps the times of the progress words. */
#ifndef DDPCHECK_EXACT_H
#define DDPCHECK_EXACT_H

#include "analyzer/engine.h"

/* notice_timed. What it completes is left in process->passed.operation. ENGINE_*. */
int exact_feed(struct event *event);
/* An operation of the slot's launch is done: hands it on, into process->passed.operation, now or
 * later. Notes want of memory in process->passed.is_short. */
void exact_pass(struct process *process, uint64_t slot, uint64_t launch,
                const struct passed *passed);
/* No more times come: what is held back is left in process->passed.operation. */
void exact_end(struct process *process);
/* Whether nearly all operations have exact times. */
bool exact_is_complete(const struct process *process);
void exact_free(struct process *process);

#endif
