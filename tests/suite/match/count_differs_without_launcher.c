/* Rows of a grid, split from all ranks; rank 2 gives another count. No launcher's variables are set: ranks are those of the
 * communicator that the row was split from.
 * expect: DC102 certain ranks=2+3 place=count_differs_without_launcher
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void count_differs_without_launcher(struct rank *me)
{
    ncclComm_t row;
    size_t count = COUNT;

    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_RANK");
    NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, 0), me->rank));
    float *x = suite_floats(COUNT);
    NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &row, NULL));
#ifndef TWIN
    if (me->rank == 2)
        count--;
#endif
    NCCL(ncclAllReduce(x, x, count, ncclFloat32, ncclSum, row, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(row));
}

SUITE_CASE(.run = count_differs_without_launcher, .ranks = 4, .layout = PROCESSES, .bare = true);
