/* ncclMemFree takes memory away without waiting for the reduction that uses it.
 * expect: DC306 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void nccl_memory_freed_in_use(struct rank *me)
{
    float *bucket;

    NCCL(ncclMemAlloc((void **)&bucket, COUNT * sizeof *bucket));
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, me->stream));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifndef TWIN
    if (me->rank != 1)
#endif
        CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclMemFree(bucket));      /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = nccl_memory_freed_in_use, .ranks = 2, .layout = PROCESSES);
