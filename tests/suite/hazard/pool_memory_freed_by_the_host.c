/* Memory of a pool is given back with cudaFree, which waits for the device only for memory of cudaMalloc.
 * expect: DC306 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void pool_memory_freed_by_the_host(struct rank *me)
{
    float *bucket;

    CUDA(cudaMallocAsync((void **)&bucket, COUNT * sizeof *bucket, me->stream));
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, me->stream));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    CUDA(cudaFree(bucket));     /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = pool_memory_freed_by_the_host, .ranks = 2, .layout = PROCESSES);
