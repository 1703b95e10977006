/* Buffers, events and streams are let go in every order that is allowed: an event right after the wait for it was
 * enqueued, a buffer after its stream is done, a stream after its last operation is done.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 14, STEPS = 4 };

static void freed_in_order(struct rank *me)
{
    for (int step = 0; step < STEPS; step++) {
        float *bucket = suite_floats(COUNT);
        cudaStream_t communication;
        cudaEvent_t reduced;

        CUDA(cudaStreamCreateWithFlags(&communication, cudaStreamNonBlocking));
        CUDA(cudaEventCreateWithFlags(&reduced, cudaEventDisableTiming));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, communication));
        CUDA(cudaEventRecord(reduced, communication));
        CUDA(cudaStreamWaitEvent(me->stream, reduced, 0));
        CUDA(cudaEventDestroy(reduced));
        CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        CUDA(cudaFree(bucket));
        CUDA(cudaStreamDestroy(communication));
    }
}

SUITE_CASE(.run = freed_in_order, .ranks = 2, .layout = PROCESSES);
