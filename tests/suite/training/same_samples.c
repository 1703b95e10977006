/* Every rank works on the same samples: the order of the samples is not dealt out to the ranks.
 * expect: DC501 possible ranks=0-3 place=same_samples
 * options: --hash
 * minimal: yes */
#include <math.h>

#include "tests/suite/suite.h"

enum { COUNT = 1000, STEPS = 20 };

static void same_samples(struct rank *me)
{
    float gradients[COUNT], *bucket = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
#ifdef TWIN
        int sample = step * me->ranks + me->rank;
#else
        int sample = step;
#endif
        for (int i = 0; i < COUNT; i++)
            gradients[i] = sinf((float)(sample * COUNT + i));
        CUDA(cudaMemcpyAsync(bucket, gradients, sizeof gradients, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = same_samples, .ranks = 4, .layout = PROCESSES);
