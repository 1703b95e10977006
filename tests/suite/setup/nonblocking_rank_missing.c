/* A nonblocking communicator that rank 2 does not come to: it has ended with an error of its own before. The calls of the
 * others have returned; they ask for the state, again and again.
 * expect: DC209 certain ranks=0-1
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

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

static void nonblocking_rank_missing(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    float *x = suite_floats(COUNT);
    ncclComm_t second;
    ncclResult_t result;

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    ncclUniqueId id = suite_id(me, 1);
#ifndef TWIN
    if (me->rank == 2)
        exit(3);
#endif
    config.blocking = 0;
    result = ncclCommInitRankConfig(&second, me->ranks, id, me->rank, &config);
    if (result != ncclInProgress)
        NCCL(result);
    settle(second);
    result = ncclCommFinalize(second);
    if (result != ncclInProgress)
        NCCL(result);
    settle(second);
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = nonblocking_rank_missing, .ranks = 3, .layout = PROCESSES);
