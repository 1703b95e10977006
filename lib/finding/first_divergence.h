/* first_divergence.h: where one of two members left a call out, or made one more, by the sequences
 * of their calls alone.
 *
 * NCCL matches calls that look alike to it, whatever their lines are. Two explanations are
 * compared. Either the program has other lines on the two members now and then: a pair of lines
 * costs 1 when it is first seen, and nothing afterwards, and that they hang costs 0.5. Or from one
 * call on, one member is `shift` calls ahead: that costs 1 for each of these calls, and the same
 * for pairs that are new behind it. The second is claimed where it is cheaper by 1, or by 0.5 where
 * all lines agreed before. */
#ifndef DDPCHECK_FIRST_DIVERGENCE_H
#define DDPCHECK_FIRST_DIVERGENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FIRST_DIVERGENCE_CALLS_MAX = 2048 }; /* of a member */

/* A call as hashes: what its peers must see of it, and the program's lines at which it was made. */
struct call_symbol {
    uint64_t signature, lines;
};

bool calls_are_equal(const struct call_symbol *a, const struct call_symbol *b);

struct call_sequence {
    const struct call_symbol *call;
    size_t count; /* <= FIRST_DIVERGENCE_CALLS_MAX */
};

struct first_divergence {
    bool is_found;
    bool is_certain;    /* cheaper by 1 or more; else by 0.5 */
    size_t at;          /* index of the first call that differs */
    int shift;          /* since then `b` is this many calls ahead of `a`, behind if < 0 */
    bool is_either_way; /* that it is as far behind, or ahead, explains about as much */
};

/* Calls of the same index were matched with each other, in order; what a member made beyond the
 * last one of the other's counts as well. Nothing is found where memory is short. */
struct first_divergence first_divergence_find(const struct call_sequence *a,
                                              const struct call_sequence *b);
/* A fact, which claims nothing: the index from which on the lines of the first `count` calls differ
 * up to the last. The pair there is new, and the calls before it agree. `count` if there is none.
 */
size_t first_divergence_last_run(const struct call_symbol *a, const struct call_symbol *b,
                                 size_t count);

#endif
