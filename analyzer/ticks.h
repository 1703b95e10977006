/* ticks.h: when the job's waits and its speed are judged.
 *
 * On ticks, which say that time has passed on a host. Judging costs as much as the job has ranks,
 * so where the records of many hosts come together it is done once for a round of their ticks: when
 * all hosts have ticked, or one has for the second time. A host alone is judged at each of its
 * ticks. Where 1,024 processes or more record nothing new, the next round that is judged is 0.1 s
 * later, then 0.2 s, ..., at most 1 s. */
#ifndef DDPCHECK_TICKS_H
#define DDPCHECK_TICKS_H

#include "analyzer/engine.h"
#include "analyzer/hang/waits.h"

/* notice_tick, notice_known or notice_ending: all that happened on the host until then is known.
 * ENGINE_*. */
int ticks_feed(struct event *event);
/* Judges the waits before a record is taken in by which its process gives up what it may wait for:
 * it aborts a communicator, exits or aborts. A framework's time-out does that; what waited then is
 * the hang, as far as that has been known for SETTLE_NS, and it is possible after less than
 * hang_after (wait_ending_patience_ns). Other records, and a process that waits for nothing: no
 * effect. */
void ticks_give_up(struct analyzer *analyzer, const struct event *event);
/* Builds the graph of waits and gives it to the checks, unless nothing can have changed. */
void ticks_judge(struct analyzer *analyzer, enum moment moment);

#endif
