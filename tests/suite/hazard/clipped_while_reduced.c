/* Gradient clipping runs on the compute stream while the bucket is still reduced on the communication stream.
 * expect: DC301 certain ranks=0-3 place=clip_gradients */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void clip_gradients(float *gradients, cudaStream_t compute)
{
    CUDA(kernels_clip(COUNT, 1, gradients, compute));
}

static void clipped_while_reduced(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t reduced;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
#ifdef TWIN
    CUDA(cudaEventRecord(reduced, me->stream));
    CUDA(cudaStreamWaitEvent(compute, reduced, 0));
#endif
    clip_gradients(gradients, compute);
    CUDA(cudaStreamSynchronize(compute));
    suite_meet(me, 0);
}

SUITE_CASE(.run = clipped_while_reduced, .ranks = 4, .layout = PROCESSES);
