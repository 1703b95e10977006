/* wait_cycle.h: cycles of waits: DC202 (across communicators, streams, threads) and DC203 (of
 * sends and receives). */
#ifndef DDPCHECK_DC202_CYCLE_H
#define DDPCHECK_DC202_CYCLE_H

#include "analyzer/checks/hang/hang_sides.h"

enum { CYCLE_STEPS_MAX = 64 };

/* One step of a cycle: those who wait in `wait` wait for a rank that is not there yet. */
struct cycle_step {
    const struct wait_node *wait;
    const struct missing *missing;   /* that has not called it; NULL: */
    const struct waiting_op *behind; /* that has, behind something else */
};

/* From step i one gets to step i + 1, and from the last to the first. */
struct cycle {
    struct cycle_step step[CYCLE_STEPS_MAX];
    int steps; /* 0: following the waits leads to no cycle */
};

/* Follows the waits from `start` until they come back to one that was there before. */
void cycle_find(const struct wait_graph *graph, const struct wait_node *start, struct cycle *cycle);
/* Leaves out the steps before `first`, which only lead to the cycle. */
void cycle_begin_at(struct cycle *cycle, int first);
/* The check that such a cycle has, NULL if it is better reported as a missing rank: of *culprit
 * then, NULL if any will do. */
const struct check *cycle_check(const struct cycle *cycle, const struct wait_node **culprit);
/* Whether ranks that still run may yet join a wait of the cycle, and so say which ranks went
 * astray; not if they have had the time after which a rank counts as missing. */
bool cycle_is_unsettled(const struct wait_graph *graph, const struct cycle *cycle);
void cycle_report(struct analyzer *analyzer, const struct wait_graph *graph,
                  const struct cycle *cycle, const struct check *check, enum certainty certainty);
/* It was reported as a cycle when ranks were late, and is reported as a missing rank now. */
void cycle_withdraw(struct analyzer *analyzer, const struct cycle *cycle);

#endif
