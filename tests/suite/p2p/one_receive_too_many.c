/* The last stage waits for a gradient that the stage before it never sends.
 * expect: DC108 certain ranks=3 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void one_receive_too_many(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    if (me->rank < me->ranks - 1)
        NCCL(ncclSend(gradients, COUNT, ncclFloat32, me->rank + 1, me->comm, me->stream));
    if (me->rank > 0)
        NCCL(ncclRecv(gradients, COUNT, ncclFloat32, me->rank - 1, me->comm, me->stream));
#ifndef TWIN
    if (me->rank == me->ranks - 1)
        NCCL(ncclRecv(gradients, COUNT, ncclFloat32, me->rank - 1, me->comm, me->stream)); /* here */
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = one_receive_too_many, .ranks = 4, .layout = THREADS);
