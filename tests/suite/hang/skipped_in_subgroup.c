/* Rank 3 skips the AllReduce of its pair and goes on to the one of all ranks. Its peer has issued both, so that all ranks wait
 * for one call: not rank 2, whose second call is queued behind the first, is wrong, but who left a call out.
 * expect: DC201 certain ranks=3 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void skipped_in_subgroup(struct rank *me)
{
    float *part = suite_floats(COUNT), *whole = suite_floats(2 * COUNT);
    ncclComm_t pair;

    NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &pair, NULL));
#ifndef TWIN
    if (me->rank != 3)
#endif
        NCCL(ncclAllReduce(part, part, COUNT, ncclFloat32, ncclSum, pair, me->stream));
    NCCL(ncclAllReduce(whole, whole, 2 * COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));    /* here */
    NCCL(ncclCommDestroy(pair));
}

SUITE_CASE(.run = skipped_in_subgroup, .ranks = 4, .layout = PROCESSES);
