/* Rank 0 destroys the communicator and leaves while it has an operation under way that rank 1 has not joined: it waits
 * for it in ncclCommDestroy, and rank 1 waits for a file that rank 0 would write.
 * expect: DC209|DC201 possible ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 10 };

static void finalize_on_some_ranks(struct rank *me)
{
    float *bucket = suite_floats(COUNT);
    ncclComm_t comm = me->comm;

    me->comm = NULL;
#ifndef TWIN
    if (me->rank == 1)
        suite_await(me, 0);
#endif
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    NCCL(ncclCommFinalize(comm));
    NCCL(ncclCommDestroy(comm));
    suite_tell(me, 0);
}

SUITE_CASE(.run = finalize_on_some_ranks, .ranks = 2, .layout = PROCESSES);
