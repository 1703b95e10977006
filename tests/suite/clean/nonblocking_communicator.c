/* A non-blocking communicator is asked for its state until it is set up, and again after each call.
 * expect: none */
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

static void nonblocking_communicator(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    float *bucket = suite_floats(COUNT);
    ncclComm_t comm;
    ncclResult_t result;

    config.blocking = 0;
    result = ncclCommInitRankConfig(&comm, me->ranks, suite_id(me, 0), me->rank, &config);
    if (result != ncclInProgress)
        NCCL(result);
    settle(comm);
    result = ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, comm, me->stream);
    if (result != ncclInProgress)
        NCCL(result);
    settle(comm);
    CUDA(cudaStreamSynchronize(me->stream));
    result = ncclCommFinalize(comm);
    if (result != ncclInProgress)
        NCCL(result);
    settle(comm);
    NCCL(ncclCommDestroy(comm));
}

SUITE_CASE(.run = nonblocking_communicator, .ranks = 4, .layout = PROCESSES, .bare = true);
