/* Nothing names iterations; all ranks repeat the same three reductions, until rank 1 leaves out the last two of a round.
 * expect: DC504 certain ranks=1+0,2-3 place=reduce
 * ends: hang */
#include "tests/suite/suite.h"

enum { ITERATIONS = 7, BUCKETS = 3 };

static const size_t size[BUCKETS] = { 4096, 2048, 100 };

static void reduce(struct rank *me, float *gradients, int buckets)
{
    for (int b = 0; b < buckets; b++)
        NCCL(ncclAllReduce(gradients, gradients, size[b], ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void bucket_left_out_unnamed(struct rank *me)
{
    float *gradients = suite_floats(size[0]);
    NCCL(ncclBroadcast(gradients, gradients, size[0], ncclFloat32, 0, me->comm, me->stream));
    for (int i = 0; i < ITERATIONS; i++) {
        int buckets = BUCKETS;
#ifndef TWIN
        buckets -= me->rank == 1 && i == 5 ? 2 : 0;
#endif
        reduce(me, gradients, buckets);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = bucket_left_out_unnamed, .ranks = 4, .layout = PROCESSES);
