/* Memory of cudaMallocAsync belongs to its stream; the AllReduce takes it on another one that does not wait for it.
 * expect: DC306 certain ranks=1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void used_before_allocated(struct rank *me)
{
    cudaStream_t allocations;
    float *bucket;

    CUDA(cudaStreamCreateWithFlags(&allocations, cudaStreamNonBlocking));
    CUDA(cudaMallocAsync((void **)&bucket, COUNT * sizeof *bucket, allocations));
#ifndef TWIN
    if (me->rank != 1)
#endif
        CUDA(cudaStreamSynchronize(allocations));
    if (me->rank == 0)
        CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, me->stream));
    NCCL(ncclBroadcast(bucket, bucket, COUNT, ncclFloat32, 0, me->comm, me->stream));       /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaFreeAsync(bucket, me->stream));
}

SUITE_CASE(.run = used_before_allocated, .ranks = 2, .layout = PROCESSES);
