/* Rank 2 issues a bucket before it resumes the communicator, whose memory was given back.
 * expect: DC111 certain ranks=2 place=here
 * fix: ncclCommResume on every rank
 * ends: any */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void reduce(struct rank *me, float *bucket)
{
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream)); /* here */
}

static void used_while_suspended(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

    NCCL(ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM));
    suite_meet(me, 0);
#ifndef TWIN
    if (me->rank == 2)
        reduce(me, bucket);
#endif
    NCCL(ncclCommResume(me->comm));
    reduce(me, bucket);
}

SUITE_CASE(.run = used_while_suspended, .ranks = 3, .layout = PROCESSES);
