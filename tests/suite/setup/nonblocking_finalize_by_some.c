/* A nonblocking communicator is finalized by all but rank 1, which waits for input that does not come, so that the last
 * AllReduce is never done.
 * expect: DC209|DC201 possible ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100, FOREVER_MS = 3600 * 1000 };

static void settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;

    while (state == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(comm, &state));
        suite_nap_ms(1);
    }
    NCCL(state);
}

static void nonblocking_finalize_by_some(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    float *bucket = suite_floats(COUNT);
    ncclComm_t world;
    ncclResult_t result;

    config.blocking = 0;
    result = ncclCommInitRankConfig(&world, me->ranks, suite_id(me, 0), me->rank, &config);
    if (result != ncclInProgress)
        NCCL(result);
    settle(world);
#ifndef TWIN
    if (me->rank == 1)
        suite_nap_ms(FOREVER_MS);
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, world, me->stream));
    result = ncclCommFinalize(world);
    if (result != ncclInProgress)
        NCCL(result);
    settle(world);
    NCCL(ncclCommDestroy(world));
}

SUITE_CASE(.run = nonblocking_finalize_by_some, .ranks = 3, .layout = PROCESSES, .bare = true);
