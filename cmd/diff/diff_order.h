/* diff_order.h: ranks that call the same on each communicator, but go over the communicators in
 * another order.
 *
 * Only for processes in which one thread makes all calls: between threads the order is chance. */
#ifndef DDPCHECK_DIFF_ORDER_H
#define DDPCHECK_DIFF_ORDER_H

#include "cmd/diff/diff_pair.h"
#include "lib/base/rankset.h"

/* The first place at which the orders part, the same on all of `ranks`. */
struct order_difference {
    uint64_t index;       /* operations of the process before it */
    uint64_t word[2];     /* what is called there, and on which communicator */
    struct rankset ranks; /* of side 0 */
    struct diff_op op[2]; /* of an example */
};

struct diff_orders {
    struct order_difference *difference;
    int differences;
};

/* After diff_compare. rank, with: as in diff_pair_ranks; -1 where all ranks are compared. Returns
 * 0, or -1 with err. */
int diff_orders(struct diff_orders *orders, const struct diff_pairs *pairs,
                struct diff_side *const side[2], int rank, int with, struct error *err);
void diff_orders_free(struct diff_orders *orders);

#endif
