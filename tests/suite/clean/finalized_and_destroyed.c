/* The documented end of a communicator: finalize, wait for the stream, destroy; and a second communicator aborted after use.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void finalized_and_destroyed(struct rank *me)
{
    float *values = suite_floats(COUNT);
    ncclComm_t second;

    NCCL(ncclCommSplit(me->comm, 0, me->ranks - me->rank, &second, NULL));
    NCCL(ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclCommFinalize(me->comm));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(me->comm));
    NCCL(ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, second, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommAbort(second));
    me->comm = NULL;
}

SUITE_CASE(.run = finalized_and_destroyed, .ranks = 3, .layout = PROCESSES);
