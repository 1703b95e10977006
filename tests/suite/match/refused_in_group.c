/* The second call of rank 1's group has another count than its peers'. --guard refuses it, and the group
 * launches nothing: its end fails as well, as where NCCL itself refuses a call.
 * expect: DC102 certain ranks=1 place=refused_in_group
 * options: --guard
 * ends: hang */
#include "tests/suite/suite.h"

enum { ELEMENTS = 16 };

static void refused_in_group(struct rank *me)
{
    float *x = suite_floats(2 * ELEMENTS);
    size_t count = ELEMENTS;

    if (me->rank == 1)
        suite_await(me, 0); /* the second who comes is refused */
#ifndef TWIN
    if (me->rank == 1)
        count = ELEMENTS / 2;
#endif
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(x, x, ELEMENTS, ncclFloat32, ncclSum, me->comm, me->stream));
    ncclResult_t result = ncclAllReduce(x + ELEMENTS, x + ELEMENTS, count, ncclFloat32, ncclSum, me->comm,
                                        me->stream); /* here */
    NCCL((ncclGroupEnd() == ncclSuccess) == (result == ncclSuccess) ? ncclSuccess : ncclInternalError);
    if (me->rank == 0)
        suite_tell(me, 0);
    NCCL(result == (count == ELEMENTS ? ncclSuccess : ncclInvalidUsage) ? ncclSuccess : ncclInternalError);
    if (count == ELEMENTS)
        CUDA(cudaStreamSynchronize(me->stream));
    else
        me->comm = NULL; /* the peers wait for the group */
}

SUITE_CASE(.run = refused_in_group, .ranks = 3, .layout = PROCESSES);
