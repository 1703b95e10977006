/* Two communicators on a stream each. The ranks issue their operations in different orders, but in each round the
 * host has waited for all of the round before; within a round the streams are independent of each other only for
 * what shares no rank: each communicator has half of the ranks.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 2048, ROUNDS = 5 };

static void other_order_between_waits(struct rank *me)
{
    float *x = suite_floats(COUNT), *y = suite_floats(COUNT);
    cudaStream_t other;
    ncclComm_t half;

    NCCL(ncclCommSplit(me->comm, me->rank % 2, me->rank, &half, NULL));
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (int round = 0; round < ROUNDS; round++) {
        bool first_half = (round + me->rank) % 2;       /* the same for both ranks of a half */
        if (first_half)
            NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, half, other));
        CUDA(cudaStreamSynchronize(other));
        NCCL(ncclAllReduce(y, y, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        if (!first_half)
            NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, half, other));
    }
    CUDA(cudaStreamSynchronize(other));
    NCCL(ncclCommDestroy(half));
}

SUITE_CASE(.run = other_order_between_waits, .ranks = 4, .layout = PROCESSES);
