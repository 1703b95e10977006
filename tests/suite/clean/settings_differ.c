/* One rank asks for a non-blocking communicator and for fewer channels, the other does not.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void settings_differ(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t state = ncclInProgress;

    if (me->rank == 1)
        config.blocking = 0;
    ncclResult_t result = ncclCommInitRankConfig(&me->comm, me->ranks, suite_id(me, 1), me->rank, &config);
    if (result != ncclInProgress)
        NCCL(result);
    while (state == ncclInProgress)
        NCCL(ncclCommGetAsyncError(me->comm, &state));
    result = ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream);
    if (result != ncclInProgress)
        NCCL(result);
    for (state = ncclInProgress; state == ncclInProgress;)
        NCCL(ncclCommGetAsyncError(me->comm, &state));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = settings_differ, .ranks = 2, .layout = PROCESSES, .bare = true);
