/* Two models share a communicator, and rank 2 runs their backward passes the other way round. The gradients have the
 * same size: each model gets the sum of both.
 * expect: DC507 possible ranks=2+0-1 place=reduce
 * minimal: yes */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 5, COUNT = 1000 };

static void reduce(struct rank *me, const char *model, float *gradients)
{
    range_push("%s backward", model);
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
    nvtxRangePop();
}

static void two_models_one_communicator(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
#ifdef TWIN
        bool encoder_first = i != 3;
#else
        bool encoder_first = me->rank != 2 || i != 3;
#endif
        range_push("iteration %d", i);
        if (encoder_first)
            reduce(me, "encoder", gradients);
        reduce(me, "decoder", gradients);
        if (!encoder_first)
            reduce(me, "encoder", gradients);
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = two_models_one_communicator, .ranks = 3, .layout = PROCESSES);
