/* Two communicators on two streams, side by side: nothing orders them on the GPU, and all ranks issue them in one order.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12, STEPS = 5 };

static void two_streams_one_order(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *metrics = suite_floats(COUNT);
    cudaStream_t second;
    ncclComm_t other;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
    CUDA(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclAllReduce(metrics, metrics, COUNT, ncclFloat32, ncclSum, other, second));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(second));
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = two_streams_one_order, .ranks = 4, .layout = PROCESSES);
