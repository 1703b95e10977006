/* A stream waits for an event that was never recorded, which CUDA lets pass at once; the first step of every loop does it.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void unrecorded_event(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaEvent_t before;

    CUDA(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
    for (int step = 0; step < 3; step++) {
        CUDA(cudaStreamWaitEvent(me->stream, before, 0));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaEventRecord(before, me->stream));
    }
    CUDA(cudaEventSynchronize(before));
}

SUITE_CASE(.run = unrecorded_event, .ranks = 4, .layout = PROCESSES);
