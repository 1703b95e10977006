/* Backward runs on its own stream; an event stands between it and the AllReduce, another before the optimizer reads.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, STEPS = 4 };

static void filled_on_other_stream(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *weights = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t ready, reduced;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int step = 0; step < STEPS; step++) {
        CUDA(kernels_fill(COUNT, 1, gradients, compute));
        CUDA(cudaEventRecord(ready, compute));
        CUDA(cudaStreamWaitEvent(me->stream, ready, 0));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
        CUDA(cudaStreamWaitEvent(compute, reduced, 0));
        CUDA(kernels_add(COUNT, gradients, weights, compute));
    }
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = filled_on_other_stream, .ranks = 4, .layout = THREADS);
