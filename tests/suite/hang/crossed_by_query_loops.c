/* Two models, each reduced and then queried until it is ready; rank 1 takes the second first. A loop over cudaStreamQuery
 * may give up, so the cycle is only possible.
 * expect: DC202 possible ranks=0+1 place=reduce
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void reduce(ncclComm_t comm, struct rank *me)
{
    float *x = suite_floats(COUNT);
    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, comm, me->stream));
    while (cudaStreamQuery(me->stream) == cudaErrorNotReady)
        suite_nap_ms(1);
}

static void crossed_by_query_loops(struct rank *me)
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

SUITE_CASE(.run = crossed_by_query_loops, .ranks = 2, .layout = PROCESSES);
