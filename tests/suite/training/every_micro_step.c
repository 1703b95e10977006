/* no_sync() was forgotten: every micro-step reduces what the last one would have.
 * expect: DC505 possible ranks=0-1 place=reduce
 * cause: no_sync() forgotten */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 4, MICRO_STEPS = 4, BUCKETS = 2, COUNT = 1000 };

static void reduce(struct rank *me, float *gradients)
{
    for (int b = 0; b < BUCKETS; b++)
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void every_micro_step(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("iteration %d", i);
        for (int micro = 0; micro < MICRO_STEPS; micro++) {
            range_push("micro_step %d", micro);
            range_push("backward");
#ifdef TWIN
            if (micro == MICRO_STEPS - 1)
#endif
                reduce(me, gradients);
            nvtxRangePop();
            nvtxRangePop();
        }
        range_push("optimizer step");
        nvtxRangePop();
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = every_micro_step, .ranks = 2, .layout = PROCESSES);
