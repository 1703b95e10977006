/* Rank 2 was started with an older WORLD_SIZE.
 * expect: DC109 certain ranks=2 place=here
 * cause: WORLD_SIZE, RANK
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

static void world_size_differs(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);

#ifdef TWIN
    int world_size = me->ranks;
#else
    int world_size = me->rank == 2 ? me->ranks - 1 : me->ranks;
#endif
    NCCL(ncclCommInitRank(&me->comm, world_size, id, me->rank));    /* here */
}

SUITE_CASE(.run = world_size_differs, .ranks = 4, .layout = PROCESSES, .bare = true);
