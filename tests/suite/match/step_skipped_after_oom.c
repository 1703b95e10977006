/* Rank 3 runs out of memory in its backward pass, catches it, and goes on with the next batch: its first bucket then meets
 * the second bucket of the others.
 * expect: DC102 certain ranks=3 place=backward
 * ends: hang */
#include "tests/suite/suite.h"

enum { BUCKETS = 3, STEPS = 3 };

static const size_t size[BUCKETS] = { 4096, 1024, 10 };

static void backward(struct rank *me, float **bucket, bool out_of_memory)
{
    for (int i = BUCKETS - 1; i >= 0; i--) {
        NCCL(ncclAllReduce(bucket[i], bucket[i], size[i], ncclFloat32, ncclAvg, me->comm, me->stream));
        if (out_of_memory)
            return;
    }
}

static void step_skipped_after_oom(struct rank *me)
{
    float *bucket[BUCKETS];

    for (int i = 0; i < BUCKETS; i++)
        bucket[i] = suite_floats(size[i]);
    for (int step = 0; step < STEPS; step++) {
#ifdef TWIN
        backward(me, bucket, false);
#else
        backward(me, bucket, me->rank == 3 && step == 1);
#endif
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = step_skipped_after_oom, .ranks = 4, .layout = PROCESSES);
