/* Each rank makes a unique id of its own, and no launcher's variables say which process is which rank.
 * expect: DC209 certain
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

static void id_not_shared_without_launcher(struct rank *me)
{
    ncclUniqueId id;

    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_RANK");
#ifdef TWIN
    id = suite_id(me, 0);
#else
    NCCL(ncclGetUniqueId(&id));
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
}

SUITE_CASE(.run = id_not_shared_without_launcher, .ranks = 3, .layout = PROCESSES, .bare = true);
