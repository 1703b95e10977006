/* The last reference to a bucket goes away before its AllReduce of the next step is issued.
 * expect: DC306 certain ranks=2 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void freed_too_early(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    if (me->rank == 2)
        CUDA(cudaFree(bucket));
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = freed_too_early, .ranks = 3, .layout = PROCESSES);
