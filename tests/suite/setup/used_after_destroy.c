/* Rank 1 reduces on a communicator that it has destroyed, and does not look at the result.
 * expect: DC111 certain ranks=1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void used_after_destroy(struct rank *me)
{
    float *loss = suite_floats(COUNT);

    NCCL(ncclAllReduce(loss, loss, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(me->comm));
#ifndef TWIN
    if (me->rank == 1)
        (void)ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, me->comm, me->stream); /* here */
#endif
    me->comm = NULL;
}

SUITE_CASE(.run = used_after_destroy, .ranks = 2, .layout = PROCESSES);
