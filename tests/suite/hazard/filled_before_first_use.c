/* The very first collective on a buffer takes it while the memset on the compute stream that fills it may still run: when it was
 * filled, nothing said that it would be a collective's.
 * expect: DC303 certain ranks=0-3 place=first_reduce */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void first_reduce(struct rank *me, float *gradients)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void filled_before_first_use(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *scratch = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t filled;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CUDA(cudaMemsetAsync(gradients, 0, COUNT * sizeof *gradients, compute));
    CUDA(cudaEventRecord(filled, compute));
    for (int i = 0; i < 100; i++)
        CUDA(cudaMemsetAsync(scratch, 0, COUNT * sizeof *scratch, compute));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(me->stream, filled, 0));
#endif
    first_reduce(me, gradients);
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = filled_before_first_use, .ranks = 4, .layout = PROCESSES);
