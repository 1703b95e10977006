/* Stage 1 of a pipeline computes activations that are NaN (bfloat16) and sends them on.
 * expect: DC502 certain ranks=1 place=nan_sent_to_next_stage
 * options: --hash */
#include "tests/suite/suite.h"

enum { COUNT = 200, STEPS = 4, ONE = 0x3f80, NOT_A_NUMBER = 0x7fc1 };

static void nan_sent_to_next_stage(struct rank *me)
{
    unsigned short activation[COUNT], *buffer = (unsigned short *)suite_floats(COUNT / 2);

    for (int step = 0; step < STEPS; step++) {
        if (me->rank > 0)
            NCCL(ncclRecv(buffer, COUNT, ncclBfloat16, me->rank - 1, me->comm, me->stream));
        for (int i = 0; i < COUNT; i++)
            activation[i] = (unsigned short)(ONE + i % 64);
#ifndef TWIN
        if (me->rank == 1 && step == 2)
            activation[17] = NOT_A_NUMBER;
#endif
        CUDA(cudaStreamSynchronize(me->stream));
        CUDA(cudaMemcpyAsync(buffer, activation, sizeof activation, cudaMemcpyHostToDevice, me->stream));
        if (me->rank + 1 < me->ranks)
            NCCL(ncclSend(buffer, COUNT, ncclBfloat16, me->rank + 1, me->comm, me->stream));
    }
}

SUITE_CASE(.run = nan_sent_to_next_stage, .ranks = 3, .layout = PROCESSES);
