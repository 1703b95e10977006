/* The buffer is deregistered as soon as the AllReduce of it was issued.
 * expect: DC306 possible ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 18 };

static void deregistered_in_flight(struct rank *me)
{
    void *buffer, *handle;

    NCCL(ncclMemAlloc(&buffer, COUNT * sizeof(float)));
    CUDA(cudaMemset(buffer, 0, COUNT * sizeof(float)));
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclCommRegister(me->comm, buffer, COUNT * sizeof(float), &handle));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    NCCL(ncclCommDeregister(me->comm, handle)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclMemFree(buffer));
}

SUITE_CASE(.run = deregistered_in_flight, .ranks = 2, .layout = PROCESSES);
