/* A communicator grew by a rank, which reduces a bucket of another length than the old ranks.
 * expect: DC102 certain ranks=2 place=here
 * ends: any */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { OLD = 2, COUNT = 1000 };

static void counts_differ_after_growth(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclUniqueId id, given = suite_id(me, 0);
    ncclComm_t old = NULL;
    size_t count = COUNT;

#ifndef TWIN
    if (me->rank == OLD)
        count = COUNT / 2;
#endif
    if (me->rank < OLD)
        NCCL(ncclCommInitRank(&old, OLD, given, me->rank));
    if (me->rank == 0)
        NCCL(ncclCommGetUniqueId(old, &id));
    id = suite_share_id(me, 1, me->rank == 0 ? &id : NULL);
    NCCL(ncclCommGrow(old, OLD + 1, old ? NULL : &id, old ? -1 : me->rank, &me->comm, NULL));
    NCCL(ncclAllReduce(bucket, bucket, count, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    if (old)
        NCCL(ncclCommDestroy(old));
}

SUITE_CASE(.run = counts_differ_after_growth, .ranks = 3, .layout = PROCESSES, .bare = true);
