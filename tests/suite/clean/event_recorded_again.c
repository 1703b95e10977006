/* One event for everything: each wait belongs to the record before it, not to those that come later.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12, STEPS = 4 };

static void event_recorded_again(struct rank *me)
{
    float *bucket = suite_floats(COUNT), *other = suite_floats(COUNT);
    cudaStream_t compute;
    cudaEvent_t event;

    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(event, me->stream));
        CUDA(cudaStreamWaitEvent(compute, event, 0));
        NCCL(ncclAllReduce(other, other, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(event, me->stream));
        CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, compute));      /* behind the first record */
        CUDA(cudaStreamWaitEvent(compute, event, 0));
        CUDA(cudaMemsetAsync(other, 0, COUNT * sizeof *other, compute));        /* behind the second */
        CUDA(cudaEventRecord(event, compute));
        CUDA(cudaStreamWaitEvent(me->stream, event, 0));
    }
    CUDA(cudaStreamSynchronize(compute));
}

SUITE_CASE(.run = event_recorded_again, .ranks = 2, .layout = PROCESSES);
