/* In half precision the scaled gradient of rank 1 overflows to Inf, in every step from the second on: the scale is not
 * lowered.
 * expect: DC502 possible ranks=1 place=half_overflows
 * options: --hash */
#include "tests/suite/suite.h"

enum { COUNT = 128, STEPS = 5, ONE = 0x3c00, INFINITE = 0x7c00 };

static void half_overflows(struct rank *me)
{
    unsigned short gradient[COUNT], *bucket = (unsigned short *)suite_floats(COUNT / 2);

    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < COUNT; i++)
            gradient[i] = (unsigned short)(ONE + i + step);
#ifndef TWIN
        if (me->rank == 1 && step > 0)
            gradient[step] = INFINITE;
#endif
        CUDA(cudaMemcpyAsync(bucket, gradient, sizeof gradient, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat16, ncclAvg, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = half_overflows, .ranks = 2, .layout = THREADS);
