/* Rank 1 broadcasts where its peers reduce. --guard refuses that call, NCCL never gets it, and rank 1 makes
 * the right one instead: the job goes on.
 * expect: DC101 certain ranks=1 place=refused_by_guard
 * options: --guard */
#include "tests/suite/suite.h"

enum { ELEMENTS = 16 };

static void refused_by_guard(struct rank *me)
{
    float *x = suite_floats(ELEMENTS);

    if (me->rank == 1) {
        suite_await(me, 0); /* the second who comes is refused */
#ifndef TWIN
        NCCL(ncclBroadcast(x, x, ELEMENTS, ncclFloat32, 0, me->comm, me->stream) == ncclInvalidUsage /* here */
                 ? ncclSuccess
                 : ncclInternalError);
#endif
    }
    NCCL(ncclAllReduce(x, x, ELEMENTS, ncclFloat32, ncclSum, me->comm, me->stream));
    if (me->rank == 0)
        suite_tell(me, 0);
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclAllReduce(x, x, ELEMENTS, ncclFloat32, ncclMax, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = refused_by_guard, .ranks = 3, .layout = PROCESSES);
