/* Rank 3 is taken out by ncclCommShrink and goes its way; the others go on without it.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void shrunk_without_a_rank(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    int excluded[] = { 3 };
    ncclComm_t rest;

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (me->rank == 3)
        return;
    NCCL(ncclCommShrink(me->comm, excluded, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    for (int step = 0; step < 3; step++)
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, rest, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(rest));
}

SUITE_CASE(.run = shrunk_without_a_rank, .ranks = 4, .layout = PROCESSES);
