/* Rank 2 deregisters its buffer twice. NCCL refuses the second call, and nobody looks.
 * expect: DC111 certain ranks=2 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void deregistered_twice(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    void *handle;

    NCCL(ncclCommRegister(me->comm, bucket, COUNT * sizeof *bucket, &handle));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDeregister(me->comm, handle));
#ifndef TWIN
    if (me->rank == 2)
        ncclCommDeregister(me->comm, handle); /* here */
#endif
}

SUITE_CASE(.run = deregistered_twice, .ranks = 4, .layout = PROCESSES);
