/* bucket.h: which gradients are reduced together. Pure arithmetic: no device, no communication.
 *
 * The rule is that of DistributedDataParallel: parameters are taken in the order in which their
 * gradients are expected (reverse order of use, since backward starts at the end; after the first
 * iteration the order in which they really came). Each goes into the open bucket of its kind, that
 * is its element type and device. A bucket that reaches its limit is closed; the next gradient of
 * that kind opens another. The first bucket of a kind has a small limit so that communication
 * starts early; the others a larger one. Buckets are reduced in the order in which they were
 * closed. */
#ifndef DDPTRAIN_BUCKET_H
#define DDPTRAIN_BUCKET_H

#include <stddef.h>

#include "trainer/module.h"

enum bucket_element { BUCKET_FLOAT, BUCKET_HALF, BUCKET_BFLOAT };

/* What must be known of a gradient. */
struct bucket_item {
    size_t bytes;
    enum bucket_element element;
    int device;
};

struct bucket_limits {
    size_t first_bytes, other_bytes;
};

struct bucket_layout {
    int order[MODULE_MAX_PARAMETERS]; /* parameters, bucket after bucket */
    int parameter_count;
    int first[MODULE_MAX_PARAMETERS +
              1]; /* bucket b holds order[first[b]] .. order[first[b+1] - 1] */
    int bucket_count;
};

/* Deals out the parameters in the given order, a permutation of 0 .. count-1; items[p] is that of
 * parameter p. */
void bucket_assign(struct bucket_layout *layout, const int *order, const struct bucket_item *items,
                   int count, const struct bucket_limits *limits);
/* order[i] = count - 1 - i. */
void bucket_reverse_order(int *order, int count);
/* True if `order` holds each of 0 .. count-1 once. */
bool bucket_is_permutation(const int *order, int count);

#endif
