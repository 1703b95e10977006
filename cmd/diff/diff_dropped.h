/* diff_dropped.h: what of two traces can't be compared because one of them no longer has it: its
 * collector dropped finished calls to stay within --keep. */
#ifndef DDPCHECK_DIFF_DROPPED_H
#define DDPCHECK_DIFF_DROPPED_H

#include "cmd/diff/diff_pair.h"
#include "lib/base/rankset.h"

/* Ranks of a communicator that are not compared, or not from their first call on. */
struct diff_gap {
    int pair; /* the communicator's */
    /* Of the first collective that is compared: of the rank with the least, and with the most;
     * DIFF_NOTHING: none is. */
    uint64_t number, last_number;
    bool dropped[2]; /* by side: its collector dropped calls */
    struct rankset ranks;
};

#define DIFF_NOTHING UINT64_MAX

struct diff_gaps {
    struct diff_gap *gap;
    int gaps;
};

/* Leaves out of both sides what one of them dropped, so that each pair of members begins with the
 * first collective that both have; a pair that has none in common is taken apart in `pairs`.
 * Returns 0, or -1 with err. Free gaps in any case. */
int diff_cut_dropped(struct diff_gaps *gaps, struct diff_pairs *pairs,
                     struct diff_side *const side[2], struct error *err);
void diff_gaps_free(struct diff_gaps *gaps);

#endif
