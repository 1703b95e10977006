/* Memory of ncclMemAlloc is not given back before the process exits.
 * expect: DC804 certain ranks=0-1 place=memory_never_freed
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void memory_never_freed(struct rank *me)
{
    void *bucket;

    NCCL(ncclMemAlloc(&bucket, COUNT * sizeof(float)));
    CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof(float), me->stream));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    NCCL(ncclMemFree(bucket));
#endif
}

SUITE_CASE(.run = memory_never_freed, .ranks = 2, .layout = PROCESSES);
