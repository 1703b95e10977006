/* Rank 3's hook launches the AllReduce in another stream without the event that the other ranks record behind backward.
 * expect: DC303 certain ranks=3 place=here */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void backward_still_runs(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t ready;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CUDA(kernels_fill(COUNT, 1, gradients, compute));
    CUDA(cudaEventRecord(ready, compute));
#ifndef TWIN
    if (me->rank != 3)
#endif
        CUDA(cudaStreamWaitEvent(me->stream, ready, 0));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));   /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = backward_still_runs, .ranks = 4, .layout = PROCESSES);
