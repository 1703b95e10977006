/* Rank 3 leaves out a reduction of its half of the job, and no launcher's variables say which process is which rank.
 * expect: DC201 possible ranks=3
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 100 };

static void missing_in_split_without_launcher(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);
    ncclComm_t half;
    float *bucket = suite_floats(COUNT);

    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    unsetenv("LOCAL_RANK");
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
    NCCL(ncclCommSplit(me->comm, me->rank / 2, me->rank, &half, NULL));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, half, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    if (me->rank == 3)
        suite_await(me, 0); /* that nobody tells */
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, half, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = missing_in_split_without_launcher, .ranks = 4, .layout = PROCESSES, .bare = true);
