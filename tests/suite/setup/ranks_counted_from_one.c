/* The ranks are counted from 1, so that the last is out of range.
 * expect: DC109 certain place=ranks_counted_from_one
 * cause: WORLD_SIZE, RANK
 * ends: any */
#include "tests/suite/suite.h"

static void ranks_counted_from_one(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);

#ifdef TWIN
    int rank = me->rank;
#else
    int rank = me->rank + 1;
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, rank));
}

SUITE_CASE(.run = ranks_counted_from_one, .ranks = 2, .layout = THREADS, .bare = true);
