/* Every rank has to suspend the communicator; rank 1 goes on to its next bucket.
 * expect: DC201|DC202 certain ranks=1
 * fix: ncclCommSuspend
 * ends: hang */
#include "abi/nccl_later.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void suspend_by_some(struct rank *me)
{
    float *bucket = suite_floats(COUNT);

#ifndef TWIN
    if (me->rank != 1)
#endif
    {
        NCCL(ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM));
        NCCL(ncclCommResume(me->comm));
    }
    NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = suspend_by_some, .ranks = 3, .layout = PROCESSES);
