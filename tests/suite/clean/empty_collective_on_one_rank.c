/* Rank 1 reduces 0 elements where the others do not call at all: NCCL drops the call, so nobody waits.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void empty_collective_on_one_rank(struct rank *me)
{
    float *sums = suite_floats(COUNT);

    for (int step = 0; step < 3; step++) {
        if (me->rank == 1)
            NCCL(ncclAllReduce(sums, sums, 0, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclAllReduce(sums, sums, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclBroadcast(sums, sums, COUNT, ncclFloat32, 0, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = empty_collective_on_one_rank, .ranks = 3, .layout = PROCESSES);
