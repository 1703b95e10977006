/* The new rank counts from 0: it asks for a number that an old rank has.
 * expect: DC109 certain
 * ends: hang */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { OLD = 2 };

static void new_rank_takes_old_number(struct rank *me)
{
    ncclUniqueId id, given = suite_id(me, 0);
    ncclComm_t old = NULL;
    int number = me->rank;

#ifndef TWIN
    number -= OLD;
#endif
    if (me->rank < OLD)
        NCCL(ncclCommInitRank(&old, OLD, given, me->rank));
    if (me->rank == 0)
        NCCL(ncclCommGetUniqueId(old, &id));
    id = suite_share_id(me, 1, me->rank == 0 ? &id : NULL);
    NCCL(ncclCommGrow(old, OLD + 1, old ? NULL : &id, old ? -1 : number, &me->comm, NULL));
    if (old)
        NCCL(ncclCommDestroy(old));
}

SUITE_CASE(.run = new_rank_takes_old_number, .ranks = 3, .layout = PROCESSES, .bare = true);
