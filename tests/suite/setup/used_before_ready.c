/* Rank 0 issues on its non-blocking communicator before it is made; NCCL refuses it, and nobody looks.
 * expect: DC111 certain ranks=0 place=here
 * fix: ncclCommGetAsyncError */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void await_communicator(struct rank *me)
{
    ncclResult_t state = ncclInProgress;

    while (state == ncclInProgress)
        NCCL(ncclCommGetAsyncError(me->comm, &state));
}

static void used_before_ready(struct rank *me)
{
    float *values = suite_floats(COUNT);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id = suite_id(me, 1);

    config.blocking = 0;
    if (me->rank == 1)
        suite_await(me, 0);
    (void)ncclCommInitRankConfig(&me->comm, me->ranks, id, me->rank, &config);
#ifndef TWIN
    if (me->rank == 0)
        (void)ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, me->comm, me->stream); /* here */
#endif
    (void)values;
    if (me->rank == 0)
        suite_tell(me, 0);
    await_communicator(me);
}

SUITE_CASE(.run = used_before_ready, .ranks = 2, .layout = PROCESSES, .bare = true);
