/* Rank 1 skips the reduction of its loss. All calls stand in one helper, but the ranks reach it from different lines.
 * expect: DC102 certain ranks=1 place=reduce
 * headed: here
 * fix: condition on the rank
 * ends: hang */
#include "tests/suite/suite.h"

enum { LOSSES = 8, GRADIENTS = 1000 };

static void reduce(struct rank *me, float *values, size_t count)
{
    NCCL(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void helper_called_from_two_places(struct rank *me)
{
    float *loss = suite_floats(LOSSES), *gradients = suite_floats(GRADIENTS);

#ifndef TWIN
    if (me->rank != 1)
#endif
        reduce(me, loss, LOSSES); /* here */
    reduce(me, gradients, GRADIENTS); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = helper_called_from_two_places, .ranks = 2, .layout = THREADS);
