/* Rank 1 has not seen that the communicator was revoked and goes on with its next bucket.
 * expect: DC111 certain ranks=1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void used_after_revoke(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    NCCL(ncclCommRevoke(me->comm, NCCL_REVOKE_DEFAULT));
#ifndef TWIN
    if (me->rank == 1)
        (void)ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream); /* here */
#endif
    (void)gradients;
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
}

SUITE_CASE(.run = used_after_revoke, .ranks = 2, .layout = PROCESSES);
