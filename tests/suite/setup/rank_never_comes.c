/* Rank 1 fails before it gets to ncclCommInitRank. It has not used NCCL yet, so it may only be unseen.
 * expect: DC209 possible ranks=1
 * cause: Fewer processes than WORLD_SIZE
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

#include <stdlib.h>

static void rank_never_comes(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);

#ifndef TWIN
    if (me->rank == 1)
        exit(3);
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
}

SUITE_CASE(.run = rank_never_comes, .ranks = 3, .layout = PROCESSES, .bare = true);
