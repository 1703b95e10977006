/* Stages of a pipeline: the first only sends, the last only receives, those between do both, in order and without a group.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1024, MICRO_BATCHES = 4 };

static void pipeline_of_stages(struct rank *me)
{
    float *activations = suite_floats(COUNT);

    for (int batch = 0; batch < MICRO_BATCHES; batch++) {
        if (me->rank > 0)
            NCCL(ncclRecv(activations, COUNT, ncclFloat32, me->rank - 1, me->comm, me->stream));
        if (me->rank < me->ranks - 1)
            NCCL(ncclSend(activations, COUNT, ncclFloat32, me->rank + 1, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = pipeline_of_stages, .ranks = 4, .layout = PROCESSES);
