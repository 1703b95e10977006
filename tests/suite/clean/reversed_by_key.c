/* The keys of a split turn the ranks around: the root 0 of the new communicator is the last rank of the old.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void reversed_by_key(struct rank *me)
{
    float *parameters = suite_floats(COUNT);
    ncclComm_t reversed;
    int rank;

    NCCL(ncclCommSplit(me->comm, 0, -me->rank, &reversed, NULL));
    NCCL(ncclCommUserRank(reversed, &rank));
    if (rank != me->ranks - 1 - me->rank)
        suite_failed(__FILE__, __LINE__, "ncclCommUserRank", "keys do not order the ranks");
    NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclFloat32, 0, reversed, me->stream));
    NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclFloat32, me->ranks - 1, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDestroy(reversed));
}

SUITE_CASE(.run = reversed_by_key, .ranks = 4, .layout = PROCESSES);
