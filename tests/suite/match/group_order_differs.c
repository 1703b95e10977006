/* Two buckets are reduced in a group, by one rank in the reverse order of the other's.
 * expect: DC106 certain place=reduce_group
 * ends: any */
#include "tests/suite/suite.h"

enum { WEIGHTS = 1000, SCORES = 200 };

static void reduce_group(struct rank *me, bool reversed)
{
    float *weights = suite_floats(WEIGHTS), *scores = suite_floats(SCORES);

    NCCL(ncclGroupStart());
    if (reversed)
        NCCL(ncclAllReduce(scores, scores, SCORES, ncclFloat32, ncclMax, me->comm, me->stream));
    NCCL(ncclAllReduce(weights, weights, WEIGHTS, ncclFloat32, ncclSum, me->comm, me->stream));
    if (!reversed)
        NCCL(ncclAllReduce(scores, scores, SCORES, ncclFloat32, ncclMax, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

static void group_order_differs(struct rank *me)
{
#ifdef TWIN
    reduce_group(me, false);
#else
    reduce_group(me, me->rank == 1);
#endif
}

SUITE_CASE(.run = group_order_differs, .ranks = 2, .layout = PROCESSES);
