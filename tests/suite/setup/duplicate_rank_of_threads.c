/* Threads take their rank from a counter that two of them read before it is increased.
 * expect: DC109 certain
 * ends: any */
#include "tests/suite/suite.h"

static void duplicate_rank_of_threads(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);
#ifdef TWIN
    int rank = me->rank;
#else
    int rank = me->rank == 1 ? 0 : me->rank;
#endif

    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, rank));
}

SUITE_CASE(.run = duplicate_rank_of_threads, .ranks = 3, .layout = THREADS, .bare = true);
