/* Uneven inputs, joined: ranks whose batches have run out make the others' reductions with zeros, in iterations without
 * backward and without a step.
 * expect: none */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 8, COUNT = 1000, BUCKETS = 2 };

static void reduce(struct rank *me, float *gradients)
{
    for (int b = 0; b < BUCKETS; b++)
        NCCL(ncclAllReduce(gradients, gradients, COUNT * (b + 1), ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void company_without_batches(struct rank *me)
{
    float *gradients = suite_floats(COUNT * BUCKETS);
    for (int i = 0; i < ITERATIONS; i++) {
        bool has_batch = i < ITERATIONS - 3 || me->rank < 2;
        range_push("iteration %d", i);
        if (has_batch)
            range_push("backward");
        reduce(me, gradients);
        if (has_batch) {
            nvtxRangePop();
            range_push("optimizer step");
            nvtxRangePop();
        }
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = company_without_batches, .ranks = 4, .layout = PROCESSES);
