/* Rank 1 was started with a smaller bucket size: its gradients are the same, in more pieces.
 * expect: DC110 certain ranks=1+0,2-3 place=reduce_in_buckets
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { WHOLE = 6000, ITERATIONS = 2 };

static void reduce_in_buckets(struct rank *me, float *gradients, size_t cap)
{
    for (size_t at = 0; at < WHOLE; at += cap)
        NCCL(ncclAllReduce(gradients + at, gradients + at, at + cap < WHOLE ? cap : WHOLE - at, ncclFloat32, ncclAvg, me->comm,
                           me->stream));
}

static void bucket_size_differs(struct rank *me)
{
    float *gradients = suite_floats(WHOLE);
#ifdef TWIN
    size_t cap = 4000;
#else
    size_t cap = me->rank == 1 ? 2500 : 4000;
#endif
    for (int i = 0; i < ITERATIONS; i++) {
        reduce_in_buckets(me, gradients, cap);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = bucket_size_differs, .ranks = 4, .layout = PROCESSES);
