/* Gradients are reduced by hand when backward is over, though the first buckets were full long before.
 * expect: DC603 possible ranks=0-1 place=reduce
 * minimal: yes */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 5, BUCKETS = 4, COUNT = 400000 };

static void reduce(struct rank *me, float *gradients)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void reduced_after_backward(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("iteration %d", i);
        range_push("backward");
#ifdef TWIN
        for (int b = 0; b < BUCKETS; b++)
            reduce(me, gradients);
#endif
        nvtxRangePop();
#ifndef TWIN
        for (int b = 0; b < BUCKETS; b++)
            reduce(me, gradients);
#endif
        range_push("optimizer step");
        nvtxRangePop();
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = reduced_after_backward, .ranks = 2, .layout = PROCESSES);
