/* After the first iteration the buckets are rebuilt in the order in which gradients came: on rank 0 its own, on the others
 * rank 0's, but rank 1 missed the broadcast and keeps its first layout.
 * expect: DC110 certain ranks=1+0,2 place=reduce
 * ends: hang */
#include "tests/suite/suite.h"

enum { ITERATIONS = 3 };

static void reduce(struct rank *me, float *gradients, const size_t *bucket, int buckets)
{
    for (int b = 0; b < buckets; b++)
        NCCL(ncclAllReduce(gradients, gradients, bucket[b], ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void rebuilt_in_own_order(struct rank *me)
{
    static const size_t first[2] = { 2500, 1500 }, rebuilt[3] = { 900, 2100, 1000 };
    float *gradients = suite_floats(4000);
    for (int i = 0; i < ITERATIONS; i++) {
        bool is_rebuilt = i > 0;
#ifndef TWIN
        is_rebuilt = is_rebuilt && me->rank != 1;
#endif
        if (is_rebuilt)
            reduce(me, gradients, rebuilt, 3);
        else
            reduce(me, gradients, first, 2);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = rebuilt_in_own_order, .ranks = 3, .layout = THREADS);
