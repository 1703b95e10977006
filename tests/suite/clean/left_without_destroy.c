/* All ranks return from main when their work is done, without ncclCommDestroy.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void left_without_destroy(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    me->comm = NULL;
}

SUITE_CASE(.run = left_without_destroy, .ranks = 4, .layout = PROCESSES);
