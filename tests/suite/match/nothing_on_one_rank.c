/* Rank 2 has no samples left and reduces 0 elements: NCCL drops its call, and its next one meets the others' first.
 * expect: DC102 certain ranks=2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void nothing_on_one_rank(struct rank *me)
{
    float *sums = suite_floats(COUNT);
    size_t count = COUNT;

#ifndef TWIN
    if (me->rank == 2)
        count = 0;
#endif
    NCCL(ncclAllReduce(sums, sums, count, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    NCCL(ncclAllReduce(sums, sums, 1, ncclFloat32, ncclMax, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = nothing_on_one_rank, .ranks = 4, .layout = THREADS);
