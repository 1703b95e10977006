/* Rank 3 was written to Reduce to rank 0 where the others AllReduce.
 * expect: DC101 certain ranks=3 place=here
 * ends: hang
 * minimal: yes */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void kind_differs(struct rank *me)
{
    float *metric = suite_floats(COUNT);

#ifdef TWIN
    NCCL(ncclAllReduce(metric, metric, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#else
    if (me->rank == 3)
        NCCL(ncclReduce(metric, metric, COUNT, ncclFloat32, ncclSum, 0, me->comm, me->stream));     /* here */
    else
        NCCL(ncclAllReduce(metric, metric, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = kind_differs, .ranks = 4, .layout = PROCESSES);
