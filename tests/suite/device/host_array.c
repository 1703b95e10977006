/* Rank 0 hands its list of lengths, from malloc, to the AllGather.
 * expect: DC404 certain ranks=0 place=here
 * ends: any
 * minimal: yes */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void host_array(struct rank *me)
{
    float *lengths = suite_floats(COUNT), *all = suite_floats(COUNT * 2);

#ifndef TWIN
    if (me->rank == 0)
        lengths = malloc(COUNT * sizeof *lengths);
#endif
    NCCL(ncclAllGather(lengths, all, COUNT, ncclFloat32, me->comm, me->stream)); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = host_array, .ranks = 2, .layout = PROCESSES);
