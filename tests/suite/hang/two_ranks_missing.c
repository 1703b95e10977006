/* The odd ranks take a branch without the barrier and wait for each other in another communicator, which their even
 * neighbours belong to.
 * expect: DC201|DC202 certain ranks=1,3
 * ends: hang */
#include "tests/suite/suite.h"

static void barrier(ncclComm_t comm, cudaStream_t stream, float *token)
{
    NCCL(ncclAllReduce(token, token, 1, ncclFloat32, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void two_ranks_missing(struct rank *me)
{
    float *token = suite_floats(1);
    ncclComm_t other;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
#ifndef TWIN
    if (me->rank % 2 == 0)
#endif
        barrier(me->comm, me->stream, token);
    barrier(other, me->stream, token);
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = two_ranks_missing, .ranks = 4, .layout = PROCESSES);
