/* Backward fills one bucket while the other is reduced; two events per bucket keep them apart.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 15, STEPS = 8 };

static void double_buffering(struct rank *me)
{
    float *bucket[2] = { suite_floats(COUNT), suite_floats(COUNT) };
    cudaEvent_t filled[2], reduced[2];
    cudaStream_t compute;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++) {
        CUDA(cudaEventCreateWithFlags(&filled[i], cudaEventDisableTiming));
        CUDA(cudaEventCreateWithFlags(&reduced[i], cudaEventDisableTiming));
    }
    for (int step = 0; step < STEPS; step++) {
        int i = step % 2;

        CUDA(cudaStreamWaitEvent(compute, reduced[i], 0));
        CUDA(kernels_fill(COUNT, (float)step, bucket[i], compute));
        CUDA(cudaEventRecord(filled[i], compute));
        CUDA(cudaStreamWaitEvent(me->stream, filled[i], 0));
        NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced[i], me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = double_buffering, .ranks = 4, .layout = PROCESSES);
