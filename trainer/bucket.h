/* bucket.h: which gradients are reduced together. Pure arithmetic: no device, no communication.
 *
 * The rule is that of DistributedDataParallel: parameters are taken in the order in which their gradients are
 * expected (reverse order of use, since backward starts at the end; after the first iteration the order in
 * which they really came). They go into the current bucket until its size reaches its limit, then a new one is
 * opened. The first bucket has a small limit so that communication starts early; the others a larger one. */
#ifndef DDPTRAIN_BUCKET_H
#define DDPTRAIN_BUCKET_H

#include <stddef.h>

#include "trainer/module.h"

struct bucket_limits {
    size_t first_bytes, other_bytes;
};

struct bucket_layout {
    int order[MODULE_MAX_PARAMETERS];           /* parameters, bucket after bucket */
    int parameter_count;
    int first[MODULE_MAX_PARAMETERS + 1];       /* bucket b holds order[first[b]] .. order[first[b+1] - 1] */
    int bucket_count;
};

/* Deals out the parameters in the given order, a permutation of 0 .. count-1; bytes[p] is the size of p. */
void bucket_assign(struct bucket_layout *layout, const int *order, const size_t *bytes, int count,
                   const struct bucket_limits *limits);
/* order[i] = count - 1 - i. */
void bucket_reverse_order(int *order, int count);
/* True if `order` holds each of 0 .. count-1 once. */
bool bucket_is_permutation(const int *order, int count);

#endif
