/* fixture.h: what the units of the trainer share: a device, and tensors from and to arrays. */
#ifndef DDPTRAIN_TEST_FIXTURE_H
#define DDPTRAIN_TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "trainer/tensor.h"

/* cmocka set-up and tear-down: *state is an open struct device. */
static inline int open_device(void **state)
{
    struct device *device = malloc(sizeof *device);
    assert_non_null(device);
    device_open(device, 0);
    *state = device;
    return 0;
}

static inline int close_device(void **state)
{
    device_close(*state);
    free(*state);
    return 0;
}

/* A leaf with a gradient of zeros and values that look random but are always the same. */
static inline struct tensor *new_leaf(struct device *device, struct tensor_shape shape,
                                      unsigned seed)
{
    struct tensor *leaf = tensor_new(device, shape);
    size_t count = shape_count(&shape);
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)((i * 7919 + seed * 104729 + (i ^ seed) * 31) % 1000) / 500.0f - 1.0f;
    tensor_upload(leaf, values);
    free(values);
    leaf->name = "leaf";
    leaf->requires_gradient = true;
    leaf->gradient = tensor_new(device, shape);
    tensor_fill(leaf->gradient, 0.0f);
    return leaf;
}

static inline void free_leaf(struct tensor *leaf)
{
    if (leaf)
        tensor_free(leaf->gradient);
    tensor_free(leaf);
}

#endif
