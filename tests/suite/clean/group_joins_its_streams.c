/* Calls of one group on two streams: the group begins when both have come that far and holds up both, so what fills
 * one call's buffer on the other call's stream is ordered.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void group_joins_its_streams(struct rank *me)
{
    float *a = suite_floats(COUNT), *b = suite_floats(COUNT);
    cudaStream_t other;

    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CUDA(cudaMemsetAsync(a, 1, COUNT * sizeof *a, other));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, a, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclAllReduce(b, b, COUNT, ncclFloat32, ncclSum, me->comm, other));
    NCCL(ncclGroupEnd());
    CUDA(cudaMemsetAsync(b, 2, COUNT * sizeof *b, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(other));
}

SUITE_CASE(.run = group_joins_its_streams, .ranks = 2, .layout = PROCESSES);
