/* An event on the default stream stands behind all blocking streams of the device, and so behind two AllReduces at once.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void barrier_of_default_stream(struct rank *me)
{
    float *first = suite_floats(COUNT), *second = suite_floats(COUNT);
    cudaStream_t stream[2], compute;
    cudaEvent_t behind_all;

    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamCreate(&stream[i]));
    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&behind_all, cudaEventDisableTiming));
    NCCL(ncclAllReduce(first, first, COUNT, ncclFloat32, ncclSum, me->comm, stream[0]));
    NCCL(ncclAllReduce(second, second, COUNT, ncclFloat32, ncclSum, me->comm, stream[1]));
    CUDA(cudaEventRecord(behind_all, NULL));
    CUDA(cudaStreamWaitEvent(compute, behind_all, 0));
    CUDA(cudaMemsetAsync(first, 0, COUNT * sizeof *first, compute));
    CUDA(cudaMemsetAsync(second, 0, COUNT * sizeof *second, compute));
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = barrier_of_default_stream, .ranks = 2, .layout = PROCESSES);
