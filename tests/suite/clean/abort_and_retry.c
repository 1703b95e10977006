/* A job that gives up an AllReduce which rank 1 does not join: all ranks abort the communicator, make a new one and do it
 * again.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void abort_and_retry(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    if (me->rank != 1)
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    suite_meet(me, 0);
    NCCL(ncclCommAbort(me->comm));
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 1), me->rank));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = abort_and_retry, .ranks = 3, .layout = PROCESSES);
