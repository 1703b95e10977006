/* Another stream writes send and receive buffers as soon as the operation is through: it waits for an event behind it.
 * expect: none
 * options: --hash */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16, STEPS = 10 };

static void written_right_behind(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *sum = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t filled, reduced;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int step = 0; step < STEPS; step++) {
        CUDA(kernels_fill(COUNT, (float)(me->rank + step), gradients, compute));
        CUDA(cudaEventRecord(filled, compute));
        CUDA(cudaStreamWaitEvent(me->stream, filled, 0));
        NCCL(ncclAllReduce(gradients, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
        CUDA(cudaStreamWaitEvent(compute, reduced, 0));
        CUDA(kernels_scale(COUNT, (float)me->rank, sum, compute));
    }
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = written_right_behind, .ranks = 4, .layout = THREADS);
