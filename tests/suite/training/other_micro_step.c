/* Gradients of four micro-steps are accumulated; rank 2 leaves no_sync() two micro-steps too early.
 * expect: DC505 possible ranks=2+0-1,3 place=reduce
 * cause: no_sync() that depends
 * minimal: yes */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 4, MICRO_STEPS = 4, COUNT = 1000 };

static void reduce(struct rank *me, float *gradients)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void other_micro_step(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
#ifdef TWIN
    int last = MICRO_STEPS - 1;
#else
    int last = me->rank == 2 ? MICRO_STEPS - 3 : MICRO_STEPS - 1;
#endif
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("iteration %d", i);
        for (int micro = 0; micro < MICRO_STEPS; micro++) {
            range_push("backward");
            if (micro == last)
                reduce(me, gradients);
            nvtxRangePop();
        }
        range_push("optimizer_step");
        nvtxRangePop();
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = other_micro_step, .ranks = 4, .layout = PROCESSES);
