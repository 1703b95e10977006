/* Gradient accumulation: every rank synchronises on each fourth micro-step, and skips none.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 4096, MICRO_STEPS = 4, STEPS = 4 };

static void accumulated_steps(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *batch = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
        for (int micro = 0; micro < MICRO_STEPS; micro++)
            CUDA(kernels_add(COUNT, batch, gradients, me->stream));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
        CUDA(kernels_fill(COUNT, 0, gradients, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = accumulated_steps, .ranks = 4, .layout = PROCESSES);
