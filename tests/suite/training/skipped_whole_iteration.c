/* Rank 1 skips a bad batch, and with it all reductions of iteration 3. Every iteration makes the same calls, so nothing
 * mismatches: gradients of different iterations are averaged from then on, and at the end one reduction is missing.
 * expect: DC504 possible ranks=1+0 place=reduce
 * ends: hang */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 6, COUNT = 1000 };

static void reduce(struct rank *me, float *gradients)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void skipped_whole_iteration(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("iteration %d", i);
#ifdef TWIN
        reduce(me, gradients);
#else
        if (me->rank != 1 || i != 3)
            reduce(me, gradients);
#endif
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = skipped_whole_iteration, .ranks = 2, .layout = PROCESSES);
