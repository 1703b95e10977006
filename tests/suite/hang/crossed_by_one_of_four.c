/* Two models, each reduced and waited for in turn; rank 1 of four takes the second first. Three ranks agree, so it is the
 * one that never called the first.
 * expect: DC201 certain ranks=1 place=reduce
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void reduce(ncclComm_t comm, struct rank *me)
{
    float *x = suite_floats(COUNT);

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void crossed_by_one_of_four(struct rank *me)
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

SUITE_CASE(.run = crossed_by_one_of_four, .ranks = 4, .layout = PROCESSES);
