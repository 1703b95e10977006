/* Rank 3 is excluded by ncclCommShrink; rank 2, which is to stay, does not call it either and waits for the old communicator.
 * expect: DC109|DC201 certain ranks=2
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void shrink_by_some(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    int excluded[] = { 3 };
    ncclComm_t rest;

    if (me->rank == 3)
        return;
#ifndef TWIN
    if (me->rank == 2) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        return;
    }
#endif
    NCCL(ncclCommShrink(me->comm, excluded, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, rest, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(rest));
}

SUITE_CASE(.run = shrink_by_some, .ranks = 4, .layout = PROCESSES);
