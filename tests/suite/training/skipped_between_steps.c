/* The only ranges are those of PyTorch's emit_nvtx: no iterations, but optimizer steps. Rank 0 leaves out a bucket.
 * expect: DC504 certain ranks=0+1-2 place=backward
 * ends: hang */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 7, FIRST = 512, SECOND = 2048 };

static void backward(struct rank *me, float *gradients, bool all)
{
    NCCL(ncclAllReduce(gradients, gradients, FIRST, ncclFloat32, ncclAvg, me->comm, me->stream));
    if (all)
        NCCL(ncclAllReduce(gradients, gradients, SECOND, ncclFloat32, ncclAvg, me->comm, me->stream));
}

static void skipped_between_steps(struct rank *me)
{
    float *gradients = suite_floats(SECOND);
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("DistributedDataParallel.forward, seq = %d, op_id = %d", 7 * i, 31 * i);
        nvtxRangePop();
#ifdef TWIN
        backward(me, gradients, true);
#else
        backward(me, gradients, me->rank != 0 || i != 4);
#endif
        range_push("Optimizer.zero_grad#SGD.zero_grad");
        nvtxRangePop();
        wait_for_step(me);
        range_push("Optimizer.step#SGD.step");
        nvtxRangePop();
    }
}

SUITE_CASE(.run = skipped_between_steps, .ranks = 3, .layout = THREADS);
