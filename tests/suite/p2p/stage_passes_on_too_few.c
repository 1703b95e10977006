/* Stage 2 of a pipeline drops the last micro-batch (its loop begins at 1), so that stage 3 waits for it.
 * expect: DC108 certain ranks=3 place=stage_passes_on_too_few
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, BATCHES = 3 };

static void stage_passes_on_too_few(struct rank *me)
{
    float *activations = suite_floats(COUNT);

    for (int i = 0; i < BATCHES; i++) {
        if (me->rank > 0)
            NCCL(ncclRecv(activations, COUNT, ncclFloat32, me->rank - 1, me->comm, me->stream));
#ifndef TWIN
        if (me->rank == 2 && i == 0)
            continue;
#endif
        if (me->rank < me->ranks - 1)
            NCCL(ncclSend(activations, COUNT, ncclFloat32, me->rank + 1, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = stage_passes_on_too_few, .ranks = 4, .layout = PROCESSES);
