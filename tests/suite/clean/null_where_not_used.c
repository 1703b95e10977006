/* Reduce and Gather write on the root only, so that the others give no receive buffer; Scatter reads there only.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 128 };

static void null_where_not_used(struct rank *me)
{
    float *own = suite_floats(COUNT), *all = me->rank == 0 ? suite_floats((size_t)COUNT * me->ranks) : NULL;

    NCCL(ncclReduce(own, all, COUNT, ncclFloat32, ncclSum, 0, me->comm, me->stream));
    NCCL(ncclGather(own, all, COUNT, ncclFloat32, 0, me->comm, me->stream));
    NCCL(ncclScatter(all, own, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = null_where_not_used, .ranks = 4, .layout = PROCESSES);
