/* Rank 1 creates the communicator before it has received the unique id: it gives one of zeros.
 * expect: DC111 certain ranks=1
 * ends: any */
#include "tests/suite/suite.h"

static void id_of_zeros(struct rank *me)
{
    ncclUniqueId id = {0};

#ifndef TWIN
    if (me->rank != 1)
#endif
        id = suite_id(me, 0);
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
}

SUITE_CASE(.run = id_of_zeros, .ranks = 2, .layout = PROCESSES, .bare = true);
