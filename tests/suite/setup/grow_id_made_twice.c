/* Rank 0 makes an id for the growth once more before it was used, and does not check for the error.
 * expect: DC111 certain ranks=0 place=here
 * fix: ncclCommGetUniqueId */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { OLD = 2 };

static void grow_id_made_twice(struct rank *me)
{
    ncclUniqueId id, given = suite_id(me, 0);
    ncclComm_t old = NULL;

    if (me->rank < OLD)
        NCCL(ncclCommInitRank(&old, OLD, given, me->rank));
    if (me->rank == 0)
        NCCL(ncclCommGetUniqueId(old, &id));
#ifndef TWIN
    ncclUniqueId other;
    if (me->rank == 0)
        (void)ncclCommGetUniqueId(old, &other); /* here */
#endif
    id = suite_share_id(me, 1, me->rank == 0 ? &id : NULL);
    NCCL(ncclCommGrow(old, OLD + 1, old ? NULL : &id, old ? -1 : me->rank, &me->comm, NULL));
    if (old)
        NCCL(ncclCommDestroy(old));
}

SUITE_CASE(.run = grow_id_made_twice, .ranks = 3, .layout = PROCESSES, .bare = true);
