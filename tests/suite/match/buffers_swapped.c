/* Rank 1 reduces its two buckets in the order in which they became ready: once the second comes first. NCCL adds one rank's
 * weights to the others' biases.
 * expect: DC112 possible ranks=1 place=reduce
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 100, STEPS = 5 };

static void reduce(struct rank *me, float *bucket)
{
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void buffers_swapped(struct rank *me)
{
    float *bucket[] = { suite_floats(COUNT), suite_floats(COUNT) };

    for (int step = 0; step < STEPS; step++) {
        int first = 0;
#ifndef TWIN
        first = me->rank == 1 && step == 3;
#endif
        reduce(me, bucket[first]);
        reduce(me, bucket[!first]);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = buffers_swapped, .ranks = 3, .layout = PROCESSES);
