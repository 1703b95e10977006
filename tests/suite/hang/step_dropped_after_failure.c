/* Rank 1 has no memory for a long sequence, catches the error and drops the whole step, as a training loop does that skips bad
 * batches. Its next steps look like the others': it ends one step early.
 * expect: DC206|DC201 certain ranks=1
 * origin: cudaMalloc failed on rank 1 before #3, at step()
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100, STEPS = 6 };

static void step(struct rank *me, float *gradients, size_t bytes)
{
    void *activations;

    if (cudaMalloc(&activations, bytes) != cudaSuccess) {
        cudaGetLastError();
        return;
    }
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaFree(activations));
}

static void step_dropped_after_failure(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int i = 0; i < STEPS; i++) {
        size_t bytes = 1 << 16;
#ifndef TWIN
        if (me->rank == 1 && i == 3)
            bytes = (size_t)1 << 60;
#endif
        step(me, gradients, bytes);
    }
}

SUITE_CASE(.run = step_dropped_after_failure, .ranks = 3, .layout = PROCESSES);
