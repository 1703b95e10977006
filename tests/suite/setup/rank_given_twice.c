/* Two processes were started with the same rank.
 * expect: DC109 certain place=rank_given_twice
 * cause: WORLD_SIZE, RANK
 * ends: any */
#include "tests/suite/suite.h"

static void rank_given_twice(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);

#ifdef TWIN
    int rank = me->rank;
#else
    int rank = me->rank == 3 ? 2 : me->rank;
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, rank));
}

SUITE_CASE(.run = rank_given_twice, .ranks = 4, .layout = PROCESSES, .bare = true);
