/* Of two ranks one skips the barrier-like AllReduce of a rare branch: no majority says which rank went astray, but of the two
 * operations one is a barrier.
 * expect: DC201 certain ranks=1 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void skipped_by_one_of_two(struct rank *me)
{
    float *flag = suite_floats(COUNT);
    ncclComm_t checks;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &checks, NULL));
#ifndef TWIN
    if (me->rank != 1)
#endif
    {
        NCCL(ncclAllReduce(flag, flag, 1, ncclFloat32, ncclMax, checks, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    NCCL(ncclAllReduce(flag, flag, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));    /* here */
    NCCL(ncclCommDestroy(checks));
}

SUITE_CASE(.run = skipped_by_one_of_two, .ranks = 2, .layout = PROCESSES);
