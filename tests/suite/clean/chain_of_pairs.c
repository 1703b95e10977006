/* Neighbours share a communicator. Rank 1 reduces with 0 before 2, rank 2 with 3 before 1: different orders, and no circle
 * among them.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void reduce_with(struct rank *me, ncclComm_t comm, float *bucket)
{
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, comm, me->stream));
}

static void chain_of_pairs(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclComm_t outer, inner;    /* 0-1 and 2-3; 1-2 */

    NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &outer, NULL));
    NCCL(ncclCommSplit(me->comm, me->rank == 1 || me->rank == 2 ? 0 : NCCL_SPLIT_NOCOLOR, me->rank, &inner, NULL));
    reduce_with(me, outer, bucket);
    if (inner)
        reduce_with(me, inner, bucket);
    reduce_with(me, outer, bucket);
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(outer));
    if (inner)
        NCCL(ncclCommDestroy(inner));
}

SUITE_CASE(.run = chain_of_pairs, .ranks = 4, .layout = PROCESSES);
