/* Two communicators: even ranks use both on one stream, odd ranks have a stream for each and an event between them. On all
 * of them the first communicator's operation is ahead.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void streams_differ_order_does_not(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *buffers = suite_floats(COUNT);
    cudaStream_t second = me->stream;
    cudaEvent_t first_done;
    ncclComm_t other;

    NCCL(ncclCommInitRank(&other, me->ranks, suite_id(me, 1), me->rank));
    CUDA(cudaEventCreateWithFlags(&first_done, cudaEventDisableTiming));
    if (me->rank % 2)
        CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    for (int step = 0; step < 3; step++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(first_done, me->stream));
        CUDA(cudaStreamWaitEvent(second, first_done, 0));
        NCCL(ncclBroadcast(buffers, buffers, COUNT, ncclFloat32, 0, other, second));
        CUDA(cudaStreamSynchronize(second));
    }
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = streams_differ_order_does_not, .ranks = 4, .layout = PROCESSES);
