/* A pool hands one address from stream to stream; each owner frees it behind the reduction, by an event.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, STEPS = 6 };

static void pool_recycled_after_event(struct rank *me)
{
    cudaStream_t owner[2];
    cudaEvent_t filled, reduced;

    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamCreateWithFlags(&owner[i], cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
    for (int step = 0; step < STEPS; step++) {
        float *bucket;
        CUDA(cudaMallocAsync((void **)&bucket, COUNT * sizeof *bucket, owner[step % 2]));
        CUDA(cudaMemsetAsync(bucket, step, COUNT * sizeof *bucket, owner[step % 2]));
        CUDA(cudaEventRecord(filled, owner[step % 2]));
        CUDA(cudaStreamWaitEvent(me->stream, filled, 0));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(reduced, me->stream));
        CUDA(cudaStreamWaitEvent(owner[step % 2], reduced, 0));
        CUDA(cudaFreeAsync(bucket, owner[step % 2]));
    }
    for (int i = 0; i < 2; i++)
        CUDA(cudaStreamSynchronize(owner[i]));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = pool_recycled_after_event, .ranks = 2, .layout = PROCESSES);
