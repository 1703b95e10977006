/* While a bucket is reduced, the one next to it in the same allocation is written.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void neighbour_written(struct rank *me)
{
    float *first = suite_floats(2 * COUNT), *second = first + COUNT;
    cudaStream_t compute;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    NCCL(ncclAllReduce(first, first, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaMemsetAsync(second, 0, COUNT * sizeof *second, compute));
    CUDA(cudaStreamSynchronize(compute));
    NCCL(ncclAllReduce(second, second, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = neighbour_written, .ranks = 4, .layout = PROCESSES);
