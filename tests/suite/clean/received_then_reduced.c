/* Memory that the program never wrote itself: it is received, gathered and broadcast into before it is reduced.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void received_then_reduced(struct rank *me)
{
    float *seed = suite_floats(COUNT), *first, *second;

    CUDA(cudaMalloc((void **)&first, COUNT * sizeof *first * 4));
    CUDA(cudaMalloc((void **)&second, COUNT * sizeof *second));
    NCCL(ncclAllGather(seed, first, COUNT, ncclFloat32, me->comm, me->stream));
    NCCL(ncclGroupStart());
    NCCL(ncclSend(seed, COUNT, ncclFloat32, (me->rank + 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclRecv(second, COUNT, ncclFloat32, (me->rank + me->ranks - 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    NCCL(ncclAllReduce(first, first, COUNT * 4, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(second, second, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = received_then_reduced, .ranks = 4, .layout = PROCESSES);
