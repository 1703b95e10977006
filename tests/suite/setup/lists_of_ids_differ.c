/* Rank 1 was sent one of the two unique ids that ncclCommInitRankScalable is to have.
 * expect: DC109 certain ranks=0+1 place=here
 * ends: any */
#include "tests/suite/suite.h"

static void lists_of_ids_differ(struct rank *me)
{
    ncclUniqueId ids[] = { suite_id(me, 1), suite_id(me, 2) };
    int count = 2;

#ifndef TWIN
    if (me->rank == 1)
        count = 1;
#endif
    NCCL(ncclCommInitRankScalable(&me->comm, me->ranks, me->rank, count, ids, NULL)); /* here */
}

SUITE_CASE(.run = lists_of_ids_differ, .ranks = 2, .layout = PROCESSES, .bare = true);
