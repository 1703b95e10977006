/* An error path ends the group that the caller ends as well.
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void group_ends_twice(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclGroupEnd());
#ifndef TWIN
    (void)ncclGroupEnd(); /* here */
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = group_ends_twice, .ranks = 2, .layout = PROCESSES);
