/* The loss is reduced once more after ncclCommFinalize.
 * expect: DC111 certain ranks=0-1 place=here
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void used_after_finalize(struct rank *me)
{
    float *loss = suite_floats(COUNT);

    NCCL(ncclAllReduce(loss, loss, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    NCCL(ncclCommFinalize(me->comm));
#ifndef TWIN
    NCCL(ncclAllReduce(loss, loss, 1, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
#endif
}

SUITE_CASE(.run = used_after_finalize, .ranks = 2, .layout = PROCESSES);
