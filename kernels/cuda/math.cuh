/* math.cuh: in what matrix products multiply (enum kernels_math), and how a kernel is chosen by
 * that. */
#ifndef DDPCHECK_KERNELS_MATH_CUH
#define DDPCHECK_KERNELS_MATH_CUH

#include "kernels/kernels.h"

/* The argument of kernels_set_math. */
extern enum kernels_math math_set;

/* The three kernels of a pass, indexed by enum kernels_math. */
#define KERNELS_OF(pass)                                                \
    {                                                                   \
        ddpcheck_##pass, ddpcheck_##pass##_tf32, ddpcheck_##pass##_bf16 \
    }

#endif
