/* rounding.h: how the twins of tensor-core kernels round what they multiply. */
#ifndef DDPCHECK_KERNELS_ROUNDING_H
#define DDPCHECK_KERNELS_ROUNDING_H

#include "kernels/casts.h"

#include <stddef.h>

/* NULL: fp32 as it is. */
typedef float round_function(float value);

static inline float round_tf32(float value)
{
    return tf32_from_float(value);
}

static inline float round_bf16(float value)
{
    return bfloat_to_float(bfloat_from_float(value));
}

static inline void round_all(round_function *round, float *values, size_t count)
{
    for (size_t i = 0; round && i < count; i++)
        values[i] = round(values[i]);
}

/* The twins twin_<layer>_<pass>, .._tf32 and .._bf16 from a function <twin>_<pass>(args, round). */
#define ROUNDED_TWIN(layer, twin, pass, suffix, round)                                  \
    void twin_##layer##_##pass##suffix(const struct twin_grid *grid, void *const *args) \
    {                                                                                   \
        (void)grid;                                                                     \
        twin##_##pass(args, round);                                                     \
    }
#define ROUNDED_TWINS(layer, twin, pass)               \
    ROUNDED_TWIN(layer, twin, pass, , NULL)            \
    ROUNDED_TWIN(layer, twin, pass, _tf32, round_tf32) \
    ROUNDED_TWIN(layer, twin, pass, _bf16, round_bf16)

#endif
