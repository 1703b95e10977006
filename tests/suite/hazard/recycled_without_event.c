/* A pool of two buffers is refilled by turns on the compute stream. It waits for the first reduction
 * only, not for those of the later turns.
 * expect: DC301 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, STEPS = 6 };

static void recycled_without_event(struct rank *me)
{
    float *bucket[2] = { suite_floats(COUNT), suite_floats(COUNT) };
    cudaStream_t compute;
    cudaEvent_t filled, reduced[2];

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++)
        CUDA(cudaEventCreateWithFlags(&reduced[i], cudaEventDisableTiming));
    for (int step = 0; step < STEPS; step++) {
        int i = step % 2;
#ifdef TWIN
        CUDA(cudaStreamWaitEvent(compute, reduced[i], 0));
#else
        if (step == 1)
            CUDA(cudaStreamWaitEvent(compute, reduced[0], 0));
#endif
        CUDA(cudaMemsetAsync(bucket[i], step, COUNT * sizeof(float), compute));     /* here */
        CUDA(cudaEventRecord(filled, compute));
        CUDA(cudaStreamWaitEvent(me->stream, filled, 0));
        NCCL(ncclAllReduce(bucket[i], bucket[i], COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced[i], me->stream));
    }
    CUDA(cudaStreamSynchronize(compute));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = recycled_without_event, .ranks = 2, .layout = PROCESSES);
