/* Rank 1 returns early, between ncclGroupStart and ncclGroupEnd, and ends; its call was never launched, and the others
 * wait in it.
 * expect: DC207 certain ranks=1 place=group_not_ended
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void group_not_ended(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifndef TWIN
    if (me->rank == 1) {
        me->comm = NULL;        /* left as it is */
        return;
    }
#endif
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = group_not_ended, .ranks = 2, .layout = PROCESSES);
