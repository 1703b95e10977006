/* Rank 0 issues three AllReduces in a group, the others one after the other: the same sequence.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void group_on_some_ranks(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    if (me->rank == 0)
        NCCL(ncclGroupStart());
    for (int i = 0; i < 3; i++)
        NCCL(ncclAllReduce(bucket + 20 * i, bucket + 20 * i, 20, ncclFloat32, ncclSum, me->comm, me->stream));
    if (me->rank == 0)
        NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = group_on_some_ranks, .ranks = 4, .layout = PROCESSES);
