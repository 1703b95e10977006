/* The optimizer on the compute stream takes gradients whose AllReduce is not waited for. A kernel may leave alone what it is
 * given, so it is only possible.
 * expect: DC302 possible ranks=0-1 place=here */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14 };

static void early_step(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *weights = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t reduced;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
    CUDA(cudaEventRecord(reduced, me->stream));
#ifdef TWIN
    CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#endif
    CUDA(kernels_add(COUNT, gradients, weights, compute));      /* here */
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = early_step, .ranks = 2, .layout = PROCESSES);
