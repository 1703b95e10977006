/* A buffer is registered with ncclCommRegister and freed before ncclCommDeregister.
 * expect: DC306 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void freed_while_registered(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    void *handle;

    NCCL(ncclCommRegister(me->comm, bucket, COUNT * sizeof *bucket, &handle));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifdef TWIN
    NCCL(ncclCommDeregister(me->comm, handle));
    CUDA(cudaFree(bucket));
#else
    CUDA(cudaFree(bucket));     /* here */
    NCCL(ncclCommDeregister(me->comm, handle));
#endif
}

SUITE_CASE(.run = freed_while_registered, .ranks = 2, .layout = PROCESSES);
