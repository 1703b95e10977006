/* Two threads create a communicator that is nonblocking. Each takes ncclInProgress, which says that the call goes on, for an
 * error, and exits: with the first the process of both ends, and nobody waits.
 * expect: DC205 certain place=in_progress_taken_for_error
 * says: exited with status 1
 * ends: error */
#include "tests/suite/suite.h"

#include <stdlib.h>

static void in_progress_taken_for_error(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = suite_id(me, 0);
    ncclResult_t result;

    config.blocking = 0;
    result = ncclCommInitRankConfig(&me->comm, me->ranks, id, me->rank, &config);
#ifndef TWIN
    if (result != ncclSuccess)
        exit(1);
#endif
    while (result == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(me->comm, &result));
        suite_nap_ms(1);
    }
    NCCL(result);
    result = ncclCommFinalize(me->comm);
    while (result == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(me->comm, &result));
        suite_nap_ms(1);
    }
    NCCL(result);
}

SUITE_CASE(.run = in_progress_taken_for_error, .ranks = 2, .layout = THREADS, .bare = true);
