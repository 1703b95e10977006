/* Gradients are accumulated over micro-steps, a different number in each iteration but the same on all ranks; backward
 * recomputes a forward (checkpointing), and each rank numbers its own samples.
 * expect: none */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 6, COUNT = 1000 };

static void accumulated_in_step(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
        int micro_steps = 2 + i % 3;
        range_push("iteration %d", i);
        for (int micro = 0; micro < micro_steps; micro++) {
            range_push("micro_step %d, sample %d", micro, 1000 * me->rank + i);
            range_push("forward");
            nvtxRangePop();
            range_push("backward");
            range_push("forward");
            nvtxRangePop();
            if (micro == micro_steps - 1)
                NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
            nvtxRangePop();
            nvtxRangePop();
        }
        range_push("optimizer step");
        nvtxRangePop();
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = accumulated_in_step, .ranks = 3, .layout = PROCESSES);
