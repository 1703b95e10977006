/* One group holds operations of two communicators and two streams, and sends beside an AllReduce.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void group_over_communicators(struct rank *me)
{
    float *first = suite_floats(3 * COUNT), *second = suite_floats(COUNT);
    cudaStream_t second_stream;
    ncclComm_t other;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &other, NULL));
    CUDA(cudaStreamCreateWithFlags(&second_stream, cudaStreamNonBlocking));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(first, first, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclSend(first + COUNT, COUNT, ncclFloat32, me->rank ^ 1, me->comm, me->stream));
    NCCL(ncclRecv(first + 2 * COUNT, COUNT, ncclFloat32, me->rank ^ 1, me->comm, me->stream));
    NCCL(ncclAllReduce(second, second, COUNT, ncclFloat32, ncclMax, other, second_stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(second_stream));
    NCCL(ncclCommDestroy(other));
}

SUITE_CASE(.run = group_over_communicators, .ranks = 4, .layout = PROCESSES);
