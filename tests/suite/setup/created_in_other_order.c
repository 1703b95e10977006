/* Two communicators over the same ranks: rank 1 creates them in the other order.
 * expect: DC209|DC202 certain
 * ends: hang */
#include "tests/suite/suite.h"

static void created_in_other_order(struct rank *me)
{
    ncclUniqueId id[2] = { suite_id(me, 0), suite_id(me, 1) };
    ncclComm_t comm[2];
#ifdef TWIN
    int first = 0;
#else
    int first = me->rank == 1;
#endif

    NCCL(ncclCommInitRank(&comm[first], me->ranks, id[first], me->rank));
    NCCL(ncclCommInitRank(&comm[1 - first], me->ranks, id[1 - first], me->rank));
    for (int i = 0; i < 2; i++)
        NCCL(ncclCommDestroy(comm[i]));
}

SUITE_CASE(.run = created_in_other_order, .ranks = 2, .layout = PROCESSES, .bare = true);
