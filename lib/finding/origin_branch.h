/* origin_branch.h: which way each of two members went at the calls that do not match: their calls
 * agreed before, so the condition lies between the last common call and these two. */
#ifndef DDPCHECK_ORIGIN_BRANCH_H
#define DDPCHECK_ORIGIN_BRANCH_H

#include "lib/finding/headline.h"
#include "lib/finding/origin_place.h"

struct origin_branch {
    char *what; /* in words; NULL: their calls do not show it. The caller frees it */
    enum advice advice;
};

/* At the finding's call. Claims what the calls show and nothing else: that one of them left a
 * function after the last common call, how often each made the call that was repeated, a call that
 * came between the two in earlier rounds, threads that make the same two calls in another order,
 * backward passes that reduce nothing, the same calls in different orders. */
struct origin_branch origin_branch(const struct origin_pair *pair);

#endif
