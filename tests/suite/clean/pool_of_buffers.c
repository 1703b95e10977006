/* A pool hands a buffer out again as soon as the event behind its last AllReduce is done: asked for, not waited for.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 4096, BUFFERS = 3, STEPS = 12 };

static void pool_of_buffers(struct rank *me)
{
    float *buffer[BUFFERS];
    cudaEvent_t used[BUFFERS];
    cudaStream_t compute;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    for (int i = 0; i < BUFFERS; i++) {
        buffer[i] = suite_floats(COUNT);
        CUDA(cudaEventCreateWithFlags(&used[i], cudaEventDisableTiming));
    }
    for (int step = 0; step < STEPS; step++) {
        int i = step % BUFFERS;
        cudaEvent_t filled;

        while (cudaEventQuery(used[i]) == cudaErrorNotReady)
            suite_nap_ms(1);
        CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
        CUDA(cudaMemsetAsync(buffer[i], step, COUNT * sizeof(float), compute));
        CUDA(cudaEventRecord(filled, compute));
        CUDA(cudaStreamWaitEvent(me->stream, filled, 0));
        CUDA(cudaEventDestroy(filled));
        NCCL(ncclAllReduce(buffer[i], buffer[i], COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(used[i], me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = pool_of_buffers, .ranks = 4, .layout = PROCESSES);
