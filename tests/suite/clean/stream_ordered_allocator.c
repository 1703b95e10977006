/* Buffers of cudaMallocAsync, freed on the stream of their AllReduce and handed out again at the same address.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 4096, STEPS = 8 };

static void stream_ordered_allocator(struct rank *me)
{
    for (int step = 0; step < STEPS; step++) {
        float *bucket;

        CUDA(cudaMallocAsync((void **)&bucket, COUNT * sizeof *bucket, me->stream));
        CUDA(cudaMemsetAsync(bucket, 0, COUNT * sizeof *bucket, me->stream));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaFreeAsync(bucket, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = stream_ordered_allocator, .ranks = 2, .layout = PROCESSES);
