/* A nonblocking communicator is split. Rank 2 goes to write a file that does not come to an end; the calls of the others have
 * returned, and they ask for the state again and again.
 * expect: DC109 possible ranks=2
 * ends: hang */
#include "tests/suite/suite.h"

enum { FOREVER_MS = 3600 * 1000 };

static void settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;

    while (state == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(comm, &state));
        suite_nap_ms(1);
    }
    NCCL(state);
}

static void nonblocking_split_by_some(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t world, part;
    ncclResult_t result;

    config.blocking = 0;
    result = ncclCommInitRankConfig(&world, me->ranks, suite_id(me, 0), me->rank, &config);
    if (result != ncclInProgress)
        NCCL(result);
    settle(world);
#ifndef TWIN
    if (me->rank == 2)
        suite_nap_ms(FOREVER_MS);
#endif
    result = ncclCommSplit(world, me->rank % 2, me->rank, &part, NULL);
    if (result != ncclInProgress)
        NCCL(result);
    settle(world);
    settle(part);
}

SUITE_CASE(.run = nonblocking_split_by_some, .ranks = 4, .layout = PROCESSES, .bare = true);
