/* Each rank waits for its stream before it ends the group, and takes what lies in the buffer for the sum.
 * expect: DC207 certain ranks=0-1 place=result_read_inside_group */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void result_read_inside_group(struct rank *me)
{
    float *x = suite_floats(COUNT);

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifndef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
    NCCL(ncclGroupEnd());
#ifdef TWIN
    CUDA(cudaStreamSynchronize(me->stream));
#endif
}

SUITE_CASE(.run = result_read_inside_group, .ranks = 2, .layout = PROCESSES);
