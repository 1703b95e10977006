/* Every rank makes a unique id of its own instead of taking rank 0's.
 * expect: DC209 certain
 * ends: hang */
#include "tests/suite/suite.h"

static void id_not_shared(struct rank *me)
{
#ifdef TWIN
    ncclUniqueId id = suite_id(me, 0);
#else
    ncclUniqueId id;

    NCCL(ncclGetUniqueId(&id));
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
}

SUITE_CASE(.run = id_not_shared, .ranks = 2, .layout = PROCESSES, .bare = true);
