/* Rank 1 has heard of one new rank more than the others when the communicator grows.
 * expect: DC109 certain ranks=1 place=here
 * fix: ncclCommGrow
 * ends: hang */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { OLD = 2, NEW = 4 };

static void grown_sizes_differ(struct rank *me)
{
    ncclUniqueId id, given = suite_id(me, 0);
    ncclComm_t old = NULL;
    int ranks = NEW;

#ifndef TWIN
    if (me->rank == 1)
        ranks = NEW + 1;
#endif
    if (me->rank < OLD)
        NCCL(ncclCommInitRank(&old, OLD, given, me->rank));
    if (me->rank == 0)
        NCCL(ncclCommGetUniqueId(old, &id));
    id = suite_share_id(me, 1, me->rank == 0 ? &id : NULL);
    NCCL(ncclCommGrow(old, ranks, old ? NULL : &id, old ? -1 : me->rank, &me->comm, NULL)); /* here */
    if (old)
        NCCL(ncclCommDestroy(old));
}

SUITE_CASE(.run = grown_sizes_differ, .ranks = 4, .layout = PROCESSES, .bare = true);
