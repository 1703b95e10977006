/* Rank 1 calls a barrier (an AllReduce of one element, as PyTorch's) where the others reduce their gradients: it has skipped a
 * step.
 * expect: DC101 certain ranks=1+0,2-3 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000, STEPS = 3 };

static void barrier_meets_gradients(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *flag = suite_floats(1);

    for (int step = 0; step < STEPS; step++) {
#ifndef TWIN
        if (me->rank == 1 && step == STEPS - 1)
            continue;
#endif
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
    }
    NCCL(ncclAllReduce(flag, flag, 1, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = barrier_meets_gradients, .ranks = 4, .layout = PROCESSES);
