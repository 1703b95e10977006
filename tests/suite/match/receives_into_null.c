/* Rank 1 was given no buffer for the gathered parts.
 * expect: DC111 certain ranks=1 place=here
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void receives_into_null(struct rank *me)
{
    float *part = suite_floats(COUNT), *all = suite_floats(COUNT * 2);

#ifndef TWIN
    if (me->rank == 1)
        all = NULL;
#endif
    NCCL(ncclAllGather(part, all, COUNT, ncclFloat32, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = receives_into_null, .ranks = 2, .layout = PROCESSES);
