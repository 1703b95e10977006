/* The generator and the discriminator share a communicator; on rank 0 they are reduced in another order.
 * expect: DC507 certain ranks=0+1-3 place=reduce
 * ends: hang */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 4 };

static const struct {
    const char *name;
    size_t count;
} model[2] = { { "generator", 4000 }, { "discriminator", 1000 } };

static void reduce(struct rank *me, int which, float *gradients)
{
    range_push("%s reduce bucket 0", model[which].name);
    NCCL(ncclAllReduce(gradients, gradients, model[which].count, ncclFloat32, ncclAvg, me->comm, me->stream));
    nvtxRangePop();
}

static void two_models_of_two_sizes(struct rank *me)
{
    float *gradients = suite_floats(model[0].count);
    for (int i = 0; i < ITERATIONS; i++) {
        int first = 0;
#ifndef TWIN
        first = me->rank == 0 && i == 2;
#endif
        range_push("iteration %d", i);
        reduce(me, first, gradients);
        reduce(me, !first, gradients);
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = two_models_of_two_sizes, .ranks = 4, .layout = THREADS);
