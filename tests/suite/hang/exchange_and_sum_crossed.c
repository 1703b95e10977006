/* Two groups of the same ranks: in the fourth step rank 2 reduces before it exchanges, the others exchange first, and each waits
 * on the host in between.
 * expect: DC202 certain ranks=2 place=reduce
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 10, STEPS = 5 };

static void exchange(struct rank *me, ncclComm_t shards, float *data)
{
    NCCL(ncclGroupStart());
    for (int peer = 0; peer < me->ranks; peer++) {
        NCCL(ncclSend(data + peer * COUNT, COUNT, ncclFloat32, peer, shards, me->stream));
        NCCL(ncclRecv(data + (me->ranks + peer) * COUNT, COUNT, ncclFloat32, peer, shards, me->stream));
    }
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

static void reduce(struct rank *me, ncclComm_t replicas, float *data)
{
    NCCL(ncclAllReduce(data, data, COUNT, ncclFloat32, ncclSum, replicas, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void exchange_and_sum_crossed(struct rank *me)
{
    float *data = suite_floats(2 * COUNT * me->ranks);
    ncclComm_t shards, replicas;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &shards, NULL));
    NCCL(ncclCommSplit(me->comm, 0, me->rank, &replicas, NULL));
    for (int step = 0; step < STEPS; step++) {
        bool reduces_first = false;
#ifndef TWIN
        reduces_first = step == 3 && me->rank == 2;
#endif
        if (reduces_first)
            reduce(me, replicas, data);
        exchange(me, shards, data);
        if (!reduces_first)
            reduce(me, replicas, data);
    }
    NCCL(ncclCommDestroy(shards));
    NCCL(ncclCommDestroy(replicas));
}

SUITE_CASE(.run = exchange_and_sum_crossed, .ranks = 3, .layout = PROCESSES);
