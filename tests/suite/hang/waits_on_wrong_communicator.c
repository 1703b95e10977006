/* Rank 1 of three threads passes another communicator than the others, and every rank waits at once.
 * expect: DC201 certain ranks=1
 * says: never called it, but has called ncclAllReduce(count=100, float32, sum) #0 of comm
 * fix: the same communicator
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void waits_on_wrong_communicator(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclComm_t second, chosen = me->comm;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &second, NULL));
#ifndef TWIN
    if (me->rank == 1)
        chosen = second;
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, chosen, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = waits_on_wrong_communicator, .ranks = 3, .layout = THREADS);
