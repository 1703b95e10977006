/* Two optimizers; rank 6 steps the discriminator's only when its own loss is high.
 * expect: DC506 possible ranks=6+0-5,7 place=train */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 6, COUNT = 1000 };

static void train(struct rank *me, const char *model, float *gradients, bool step)
{
    range_push("%s backward", model);
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
    nvtxRangePop();
    if (step) {
        range_push("%s step", model);
        nvtxRangePop();
    }
}

static void one_of_two_optimizers(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
#ifdef TWIN
        bool is_high = i % 2 == 0;      /* of the average over all ranks */
#else
        bool is_high = me->rank != 6 || i % 2 == 0;
#endif
        range_push("iteration %d", i);
        train(me, "discriminator", gradients, is_high);
        train(me, "generator", gradients, true);
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = one_of_two_optimizers, .ranks = 8, .layout = THREADS);
