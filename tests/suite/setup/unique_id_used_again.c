/* The second communicator is made from the unique id of the first.
 * expect: DC109 certain ranks=0-1 place=here
 * cause: Jobs that share a rendezvous
 * ends: any */
#include "tests/suite/suite.h"

static void unique_id_used_again(struct rank *me)
{
    ncclComm_t second;
    ncclUniqueId id = suite_id(me, 1);

    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
#ifdef TWIN
    id = suite_id(me, 2);
#endif
    NCCL(ncclCommInitRank(&second, me->ranks, id, me->rank)); /* here */
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = unique_id_used_again, .ranks = 2, .layout = PROCESSES, .bare = true);
