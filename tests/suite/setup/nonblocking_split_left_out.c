/* A nonblocking communicator is split. Rank 2 leaves the split out and waits for its next AllReduce, which the others would
 * call after they have asked for the state often enough.
 * expect: DC109 possible ranks=2
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;

    while (state == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(comm, &state));
        suite_nap_ms(1);
    }
    NCCL(state);
}

static void nonblocking_split_left_out(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    float *x = suite_floats(COUNT);
    ncclComm_t world, part = NULL;
    ncclResult_t result;
    bool splits = true;

    config.blocking = 0;
    result = ncclCommInitRankConfig(&world, me->ranks, suite_id(me, 0), me->rank, &config);
    if (result != ncclInProgress)
        NCCL(result);
    settle(world);
#ifndef TWIN
    splits = me->rank != 2;
#endif
    if (splits) {
        result = ncclCommSplit(world, me->rank % 2, me->rank, &part, NULL);
        if (result != ncclInProgress)
            NCCL(result);
        settle(world);
        settle(part);
    }
    result = ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, world, me->stream);
    if (result != ncclInProgress)
        NCCL(result);
    settle(world);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = nonblocking_split_left_out, .ranks = 4, .layout = PROCESSES, .bare = true);
