/* Rank 1 takes the old code path without the second communicator and waits in an AllReduce of the first, while the others
 * set up the second.
 * expect: DC209 certain ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 10 };

static void second_communicator_forgotten(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclComm_t second = NULL;

#ifndef TWIN
    if (me->rank != 1)
#endif
        NCCL(ncclCommInitRank(&second, me->ranks, suite_id(me, 1), me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    if (second)
        NCCL(ncclCommDestroy(second));
}

SUITE_CASE(.run = second_communicator_forgotten, .ranks = 3, .layout = PROCESSES);
