/* Each rank clears its bucket for the next iteration before it ends the group, and so reduces zeros. It may be meant to fill
 * the bucket there.
 * expect: DC301 possible ranks=0-1 place=cleared_inside_group */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void cleared_inside_group(struct rank *me)
{
    float *x = suite_floats(COUNT), *sum = suite_floats(COUNT);

    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(x, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#ifndef TWIN
    CUDA(cudaMemsetAsync(x, 0, COUNT * sizeof *x, me->stream));
#endif
    NCCL(ncclGroupEnd());
#ifdef TWIN
    CUDA(cudaMemsetAsync(x, 0, COUNT * sizeof *x, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = cleared_inside_group, .ranks = 2, .layout = PROCESSES);
