/* Rank 0 reduces in place, the others into a second buffer: each rank's own choice.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void in_place_on_some_ranks(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    float *reduced = me->rank == 0 ? gradients : suite_floats(COUNT);

    NCCL(ncclAllReduce(gradients, reduced, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = in_place_on_some_ranks, .ranks = 4, .layout = PROCESSES);
