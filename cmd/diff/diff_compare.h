/* diff_compare.h: what two traces' ranks did differently, ranks that differ alike as one. */
#ifndef DDPCHECK_DIFF_COMPARE_H
#define DDPCHECK_DIFF_COMPARE_H

#include <uthash.h>

#include "cmd/diff/diff_pair.h"
#include "lib/base/alignment.h"
#include "lib/base/rankset.h"

/* What is one difference: the same operations, first at the same place, as often. */
struct difference_key {
    uint64_t what; /* hash of the operations on both sides */
    uint64_t at[2], times, last;
    int64_t pair;
};

struct difference {
    struct difference_key key;
    struct rankset ranks; /* of side 0 */
    int member[2];        /* an example of them */
    struct hunk hunk;     /* the first time */
    /* From the beginning of side 0's trace to this place, by the time of the communicator's first
     * rank (of side 1's, if that did nothing on side 0): what ranks do at one place is not put in
     * order by chance. */
    uint64_t since_begin_ns;
    bool at_end[2]; /* nothing follows on that side */
    UT_hash_handle hh;
};

struct diff_result {
    struct difference **difference; /* in the order of time */
    int differences;
    uint64_t members, unequal; /* compared; that differ */
    uint64_t not_counted;      /* differences beyond what is kept of a member */
    struct rankset only[2];    /* ranks that have a trace on one side only */
    struct difference *table;
};

/* What is kept of one member: kinds of differences, and differences in all. */
enum { DIFF_KINDS_MAX = 256, DIFF_HUNKS_MAX = 100000 };

/* Compares the members of all pairs. relative: see diff_op_word. Returns 0, or -1 with err. */
int diff_compare(struct diff_result *result, const struct diff_pairs *pairs,
                 struct diff_side *const side[2], bool relative, struct error *err);
void diff_result_free(struct diff_result *result);

#endif
