/* Rank 0 gives half the count in every call: two of its calls are as much as one of rank 1, but it makes no more calls than rank 1.
 * expect: DC102 certain ranks=0+1 place=half_the_count_again_and_again
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void half_the_count_again_and_again(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    size_t count = COUNT;

#ifndef TWIN
    if (me->rank == 0)
        count /= 2;
#endif
    for (int step = 0; step < 6; step++)
        NCCL(ncclAllReduce(bucket, bucket, count, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = half_the_count_again_and_again, .ranks = 2, .layout = PROCESSES);
