/* hang_sides.h: who waits and who is missing, as the sides of a finding about a hang. */
#ifndef DDPCHECK_HANG_SIDES_H
#define DDPCHECK_HANG_SIDES_H

#include "analyzer/findings.h"
#include "analyzer/hang/waits.h"

/* A side, the first of most findings: who issued the operation. The first to issue it says where it
 * waits, if it does, else another. */
void hang_add_waiting(struct draft *draft, const struct wait_graph *graph,
                      const struct wait_node *wait);
/* A side for each group of missing ranks that are in the same place; first those that ended and are
 * the cause, beside which those that ended because of them are left out. */
void hang_add_missing(struct draft *draft, const struct wait_graph *graph,
                      const struct wait_node *wait);
/* The call that those who wait made: "ncclAllReduce(count=1, float32, sum)", "ncclCommSplit". */
struct act hang_call(const struct wait_node *wait);
/* Records that would have reported more were lost. */
bool hang_lost_records(const struct wait_node *wait);
/* The member's own operation in the wait can't start: it does not wait in it yet. */
bool hang_is_behind(const struct wait_node *wait, const struct member *member);
/* The member has issued it, and waits in it as far as anybody knows; *blocked is its thread that
 * does, NULL if none. */
bool hang_waits_in(const struct wait_graph *graph, const struct wait_node *wait,
                   const struct member *member, const struct blocked **blocked);
/* The thread that waits issues the operations of all missing ranks as well: one that drives several
 * devices. */
bool hang_in_one_thread(const struct wait_graph *graph, const struct wait_node *wait);
/* How many other threads the process has in which all who wait in this set-up are, where they may
 * be the ranks that have not come: no launcher says that other processes are. 0: not enough. */
uint32_t hang_other_threads(const struct wait_node *wait);
/* The side's ranks have ended, or are ending. */
bool hang_side_ended(const struct finding_side *side);
/* Where the first that came called the operation; NULL where the wait is for something else. */
const struct site *hang_issued_at(const struct wait_node *wait);

#endif
