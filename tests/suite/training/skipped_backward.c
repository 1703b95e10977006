/* Rank 3 runs out of memory in iteration 4, catches that and goes on: it never reduces the second bucket of iteration 4.
 * expect: DC504 certain ranks=3+0-2 place=backward
 * ends: hang
 * minimal: yes */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 7, FIRST = 1000, SECOND = 300 };

static void backward(struct rank *me, float *gradients, bool out_of_memory)
{
    range_push("model backward");
    NCCL(ncclAllReduce(gradients, gradients, FIRST, ncclFloat32, ncclAvg, me->comm, me->stream));
#ifdef TWIN
    if (out_of_memory)
        CUDA(cudaMemsetAsync(gradients, 0, SECOND * sizeof *gradients, me->stream));    /* take part with zeros */
    NCCL(ncclAllReduce(gradients, gradients, SECOND, ncclFloat32, ncclAvg, me->comm, me->stream));
#else
    if (!out_of_memory)
        NCCL(ncclAllReduce(gradients, gradients, SECOND, ncclFloat32, ncclAvg, me->comm, me->stream));
#endif
    nvtxRangePop();
}

static void skipped_backward(struct rank *me)
{
    float *gradients = suite_floats(FIRST);
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("iteration %d", i);
        backward(me, gradients, me->rank == 3 && i == 4);
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = skipped_backward, .ranks = 4, .layout = PROCESSES);
