/* The communicator of ranks 0-2 grows by rank 3. Rank 1 does not grow with the others: it goes on
 * to its next bucket.
 * expect: DC209|DC202 certain ranks=1
 * fix: ncclCommGrow
 * ends: hang */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { OLD = 3, COUNT = 1000 };

static void grow_by_some(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclUniqueId id, given = suite_id(me, 0);
    ncclComm_t old = NULL;

    if (me->rank < OLD)
        NCCL(ncclCommInitRank(&old, OLD, given, me->rank));
    if (me->rank == 0)
        NCCL(ncclCommGetUniqueId(old, &id));
    id = suite_share_id(me, 1, me->rank == 0 ? &id : NULL);
#ifndef TWIN
    if (me->rank != 1)
#endif
        NCCL(ncclCommGrow(old, OLD + 1, old ? NULL : &id, old ? -1 : me->rank, &me->comm, NULL));
    if (old)
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, old, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (old)
        NCCL(ncclCommDestroy(old));
}

SUITE_CASE(.run = grow_by_some, .ranks = 4, .layout = PROCESSES, .bare = true);
