/* diff_pair.h: which communicator of one trace is which of the other, and which ranks of the two
 * are compared.
 *
 * Ids differ from run to run, so communicators are known by who is in them and by the order in
 * which they came to exist: the second communicator of ranks 0-3 is the second of ranks 0-3. Where
 * the jobs are of different size, the communicators of all ranks stand for each other. */
#ifndef DDPCHECK_DIFF_PAIR_H
#define DDPCHECK_DIFF_PAIR_H

#include "cmd/diff/diff_side.h"

struct diff_pair {
    int comm[2];    /* index in each side's comm[] */
    int *member[2]; /* members to compare, side by side; -1: that side has no trace of the rank */
    int members;
};

struct diff_pairs {
    struct diff_pair *pair;
    int pairs;
    int *extra[2]; /* communicators that the other side does not have */
    int extras[2];
};

/* Pairs all communicators of two traces. Returns 0, or -1 when memory is short. */
int diff_pair_traces(struct diff_pairs *pairs, const struct diff_side *a,
                     const struct diff_side *b);
/* Pairs those of two ranks of one trace: the same one where both are in it, else those of the same
 * size in order. */
int diff_pair_ranks(struct diff_pairs *pairs, const struct diff_side *side, int rank, int with);
void diff_pairs_free(struct diff_pairs *pairs);

#endif
