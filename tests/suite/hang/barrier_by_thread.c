/* Three threads meet in a barrier made of an AllReduce; the fourth goes on to the Broadcast of a second communicator,
 * where it waits for them.
 * expect: DC201 certain ranks=3
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 64 };

static void barrier(struct rank *me, float *token)
{
    NCCL(ncclAllReduce(token, token, 1, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void barrier_by_thread(struct rank *me)
{
    float *token = suite_floats(1), *weights = suite_floats(COUNT);
    ncclComm_t other;

    NCCL(ncclCommInitRank(&other, me->ranks, suite_id(me, 1), me->rank));
#ifndef TWIN
    if (me->rank != 3)
#endif
        barrier(me, token);
    NCCL(ncclBroadcast(weights, weights, COUNT, ncclFloat32, 0, other, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = barrier_by_thread, .ranks = 4, .layout = THREADS);
