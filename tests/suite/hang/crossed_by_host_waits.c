/* Two models, each reduced and waited for in turn; rank 1 takes the second first.
 * expect: DC202 certain ranks=0+1 place=reduce
 * cause: Host waits
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void reduce(ncclComm_t comm, struct rank *me)
{
    float *x = suite_floats(COUNT);

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void crossed_by_host_waits(struct rank *me)
{
    ncclComm_t generator = me->comm, discriminator;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &discriminator, NULL));
#ifndef TWIN
    if (me->rank == 1) {
        reduce(discriminator, me);
        reduce(generator, me);
    } else
#endif
    {
        reduce(generator, me);
        reduce(discriminator, me);
    }
    NCCL(ncclCommDestroy(discriminator));
}

SUITE_CASE(.run = crossed_by_host_waits, .ranks = 2, .layout = PROCESSES);
