/* A thousand steps without a wait of the host, with a bucket for each of the last eight.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 64, BUCKETS = 8, STEPS = 1000 };

static void thousand_steps(struct rank *me)
{
    float *bucket = suite_floats(COUNT * BUCKETS);

    for (int step = 0; step < STEPS; step++) {
        float *own = bucket + step % BUCKETS * COUNT;
        CUDA(cudaMemsetAsync(own, 0, COUNT * sizeof *own, me->stream));
        NCCL(ncclAllReduce(own, own, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = thousand_steps, .ranks = 4, .layout = PROCESSES);
