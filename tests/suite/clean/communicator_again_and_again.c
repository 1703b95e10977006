/* Communicators are made and destroyed in a loop, so that NCCL gives the same handle out again.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void communicator_again_and_again(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    for (int i = 1; i < 6; i++) {
        NCCL(ncclCommInitRank(&me->comm, me->ranks, suite_id(me, i), me->rank));
        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        NCCL(ncclCommFinalize(me->comm));
        NCCL(ncclCommDestroy(me->comm));
    }
    me->comm = NULL;
    NCCL(ncclCommDestroy(NULL));
}

SUITE_CASE(.run = communicator_again_and_again, .ranks = 2, .layout = PROCESSES, .bare = true);
