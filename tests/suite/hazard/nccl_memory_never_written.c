/* Each rank reduces memory of ncclMemAlloc that nothing has filled.
 * expect: DC310 possible ranks=0-3 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 4096 };

static void nccl_memory_never_written(struct rank *me)
{
    void *values, *handle;

    NCCL(ncclMemAlloc(&values, COUNT * sizeof(float)));
    NCCL(ncclCommRegister(me->comm, values, COUNT * sizeof(float), &handle));
#ifdef TWIN
    CUDA(cudaMemsetAsync(values, 0, COUNT * sizeof(float), me->stream));
#endif
    NCCL(ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDeregister(me->comm, handle));
    NCCL(ncclMemFree(values));
}

SUITE_CASE(.run = nccl_memory_never_written, .ranks = 4, .layout = THREADS);
