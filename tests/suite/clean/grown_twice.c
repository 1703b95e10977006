/* A communicator grows by one rank after the other, in turn with splits; each is used, the old ones
 * too, and the last makes the id of the second growth.
 * expect: none */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { RANKS = 4, COUNT = 1000 };

static void reduce(struct rank *me, float *bucket, ncclComm_t comm)
{
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void grown_twice(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclUniqueId id, given = suite_id(me, 0);
    ncclComm_t grown, half;

    if (me->rank < 2)
        NCCL(ncclCommInitRank(&me->comm, 2, given, me->rank));
    for (int ranks = 2; ranks < RANKS; ranks++) {
        bool makes = me->rank == ranks - 1, is_old = me->comm;

        if (makes)
            NCCL(ncclCommGetUniqueId(me->comm, &id));
        id = suite_share_id(me, ranks, makes ? &id : NULL);
        if (me->rank > ranks)
            continue;
        NCCL(ncclCommGrow(me->comm, ranks + 1, is_old ? NULL : &id, is_old ? -1 : ranks, &grown,
                          NULL));
        if (is_old)
            NCCL(ncclCommDestroy(me->comm));
        me->comm = grown;
        reduce(me, bucket, grown);
        NCCL(ncclCommSplit(grown, me->rank % 2, 0, &half, NULL));
        reduce(me, bucket, half);
        NCCL(ncclCommDestroy(half));
    }
}

SUITE_CASE(.run = grown_twice, .ranks = 4, .layout = PROCESSES, .bare = true);
