/* The AllReduce runs on a stream that was made without cudaStreamNonBlocking, so that work on the legacy default stream
 * waits for it, and it for that work.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16 };

static void default_stream_waits(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    cudaStream_t blocking;

    CUDA(cudaStreamCreate(&blocking));
    for (int step = 0; step < 3; step++) {
        CUDA(cudaMemsetAsync(bucket, step, COUNT * sizeof *bucket, NULL));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, blocking));
    }
    CUDA(cudaStreamSynchronize(blocking));
}

SUITE_CASE(.run = default_stream_waits, .ranks = 2, .layout = PROCESSES);
