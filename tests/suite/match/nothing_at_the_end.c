/* Rank 1 gathers 0 elements in the last step and is done; the others wait for it.
 * expect: DC102 certain ranks=1 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void nothing_at_the_end(struct rank *me)
{
    float *part = suite_floats(COUNT), *all = suite_floats(COUNT * 3);
    size_t count = COUNT;

#ifndef TWIN
    if (me->rank == 1)
        count = 0;
#endif
    NCCL(ncclAllGather(part, all, count, ncclFloat32, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = nothing_at_the_end, .ranks = 3, .layout = PROCESSES);
