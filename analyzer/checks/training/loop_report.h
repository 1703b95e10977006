/* loop_report.h: the checks that the members of a communicator make an operation in the same place
 * of their training loops. */
#ifndef DDPCHECK_LOOP_REPORT_H
#define DDPCHECK_LOOP_REPORT_H

#include "analyzer/loop/loop_divergence.h"

enum { LOOP_PLACE_BYTES = 96 };

/* How one kind of divergence is reported. */
struct loop_divergence_rule {
    const struct check *check;
    struct act (*describe)(const struct loop_divergence *, const struct arrival *);
    void (*say)(struct draft *, const struct loop_divergence *);
};

extern const struct loop_divergence_rule incomplete_iteration_rule, incomplete_round_rule,
    different_micro_steps_rule, model_order_rule;

/* Finds all kinds: the handlers of EVENT_OPERATION and EVENT_ITERATION; DC504 has them. */
event_handler loop_on_operation, loop_on_iteration;

/* The operation reduces over all ranks. */
bool loop_is_reduction(unsigned api);
/* Of two members in different iterations, the one that is ahead left out what it usually makes. */
bool iteration_is_incomplete(const struct arrival *a, const struct arrival *b);
/* One goes on with the round that all have repeated; the other begins the next, and leaves out
 * reductions only. */
bool round_is_incomplete(const struct comm *comm, uint64_t number, const struct arrival *usual,
                         const struct arrival *early);

#endif
