/* In iteration 4 ranks 5 and 6 use only a part of the model: the last of their three buckets never fills.
 * expect: DC504 certain ranks=5-6+0-4,7 place=reduce_used
 * ends: hang */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 6, BUCKETS = 3 };

static const size_t size[BUCKETS] = { 4096, 2048, 100 };

static void reduce_used(struct rank *me, float *gradients, int used)
{
    range_push("backward");
    for (int b = 0; b < used; b++)
        NCCL(ncclAllReduce(gradients, gradients, size[b], ncclFloat32, ncclSum, me->comm, me->stream));
    nvtxRangePop();
}

static void unused_parameters(struct rank *me)
{
    float *gradients = suite_floats(size[0]);
    for (int i = 0; i < ITERATIONS; i++) {
        int used = BUCKETS;
#ifndef TWIN
        used -= i == 4 && (me->rank == 5 || me->rank == 6);
#endif
        range_push("train_step");
        reduce_used(me, gradients, used);
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = unused_parameters, .ranks = 8, .layout = PROCESSES);
