/* activation.h: what a convolution does to its results before it writes them, for kernels and twins
 * alike. */
#ifndef DDPCHECK_KERNELS_ACTIVATION_H
#define DDPCHECK_KERNELS_ACTIVATION_H

#include "kernels/kernels.h"

#include <math.h>

#ifdef __CUDACC__
#define DDPCHECK_ACTIVATION static __host__ __device__ inline
#else
#define DDPCHECK_ACTIVATION static inline
#endif

DDPCHECK_ACTIVATION float activated(struct kernels_activation activation, float value)
{
    if (activation.kind == KERNELS_LEAKY_RELU)
        return value > 0 ? value : activation.slope * value;
    return activation.kind == KERNELS_TANH ? tanhf(value) : value;
}

#endif
