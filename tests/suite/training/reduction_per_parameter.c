/* Every parameter is reduced by itself: 60 calls for a few kilobytes, in every iteration.
 * expect: DC602 possible ranks=0-1 place=reduce_each
 * minimal: yes */
#include "tests/suite/suite.h"

enum { ITERATIONS = 5, PARAMETERS = 60, COUNT = 50 };

static void reduce_each(struct rank *me, float *gradients)
{
#ifdef TWIN
    NCCL(ncclAllReduce(gradients, gradients, PARAMETERS * COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
#else
    for (int p = 0; p < PARAMETERS; p++)
        NCCL(ncclAllReduce(gradients + p * COUNT, gradients + p * COUNT, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
#endif
}

static void reduction_per_parameter(struct rank *me)
{
    float *gradients = suite_floats(PARAMETERS * COUNT);
    for (int i = 0; i < ITERATIONS; i++) {
        reduce_each(me, gradients);
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = reduction_per_parameter, .ranks = 2, .layout = PROCESSES);
