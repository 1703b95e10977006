/* Rank 1 prepares data for ever before its first NCCL call, and no launcher's variables say which process is which rank.
 * expect: DC209 possible ranks=1
 * says: it may be process
 * fix: before its first NCCL call
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

static void prepares_without_launcher(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);

    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_RANK");
#ifndef TWIN
    if (me->rank == 1)
        suite_await(me, 0); /* that nobody tells */
#endif
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
}

SUITE_CASE(.run = prepares_without_launcher, .ranks = 3, .layout = PROCESSES, .bare = true);
