/* Rank 1 gives up with ncclCommAbort right behind its AllReduce, before rank 0 has come: what it issued is cut off, and rank
 * 0 waits for ever although both have called the operation.
 * expect: DC205 certain ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void aborted_in_flight(struct rank *me)
{
    float *x = suite_floats(COUNT);

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    if (me->rank == 0)
        suite_await(me, 0);
#endif
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifndef TWIN
    if (me->rank == 1) {
        NCCL(ncclCommAbort(me->comm));
        me->comm = NULL;
        suite_tell(me, 0);
        return;
    }
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = aborted_in_flight, .ranks = 2, .layout = PROCESSES);
