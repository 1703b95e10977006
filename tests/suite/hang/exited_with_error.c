/* Rank 3 catches an exception, prints it and exits with status 1 without a word to the others.
 * expect: DC205 certain ranks=3
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void exited_with_error(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *whole = suite_floats((size_t)COUNT * me->ranks);

    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    if (me->rank == 3)
        exit(1);
#endif
    NCCL(ncclAllGather(gradients, whole, COUNT, ncclFloat32, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = exited_with_error, .ranks = 8, .layout = PROCESSES);
