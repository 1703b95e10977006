/* Rank 0 asks for a unique id before all ranks set the same variable, as a program does that makes the id while it starts.
 * expect: none */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 100 };

static void variables_set_after_first_call(struct rank *me)
{
    ncclUniqueId id = suite_id(me, 0);
    float *bucket = suite_floats(COUNT);

    setenv("NCCL_PROTO", "Simple", 1);
    NCCL(ncclCommInitRank(&me->comm, me->ranks, id, me->rank));
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = variables_set_after_first_call, .ranks = 3, .layout = PROCESSES, .bare = true);
