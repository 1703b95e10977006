/* Mixed precision: rank 1 looks for an overflow before the reduction, finds one, and skips the step alone.
 * expect: DC506 possible ranks=1+0,2-3 place=reduce
 * minimal: yes */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 5, COUNT = 1000 };

static void reduce(struct rank *me, float *gradients)
{
    range_push("backward");
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
    nvtxRangePop();
}

static void overflow_on_one_rank(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
        bool overflow = i == 3;
#ifndef TWIN
        overflow = overflow && me->rank == 1;
#endif
        range_push("iteration %d", i);
        reduce(me, gradients);
        if (!overflow) {
            range_push("optimizer step");
            nvtxRangePop();
        }
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = overflow_on_one_rank, .ranks = 4, .layout = PROCESSES);
