/* Tensor and data parallel reductions overlap on two streams. Their order changes from step to step, in the same way on
 * all ranks.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 4096, STEPS = 8 };

static void two_communicators_in_order(struct rank *me)
{
    float *x = suite_floats(COUNT), *y = suite_floats(COUNT);
    cudaStream_t other;
    ncclComm_t data;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &data, NULL));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 2; i++)
            if ((i + step) % 2)
                NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
            else
                NCCL(ncclAllReduce(y, y, COUNT, ncclFloat32, ncclSum, data, other));
        if (step % 3 == 2)
            CUDA(cudaDeviceSynchronize());
    }
    CUDA(cudaDeviceSynchronize());
    NCCL(ncclCommDestroy(data));
}

SUITE_CASE(.run = two_communicators_in_order, .ranks = 4, .layout = PROCESSES);
