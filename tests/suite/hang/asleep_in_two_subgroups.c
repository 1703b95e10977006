/* In each of two subgroups one rank never comes back from its data loader: rank 1 of the first, rank 6 of the second.
 * expect: DC201 possible
 * findings: 2
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, GROUP = 4, FOREVER_MS = 3600 * 1000 };

static void load_batch(const struct rank *me)
{
#ifndef TWIN
    if (me->rank % GROUP == me->rank / GROUP + 1)
        suite_nap_ms(FOREVER_MS);
#endif
    (void)me;
}

static void asleep_in_two_subgroups(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    ncclComm_t group;
    NCCL(ncclCommSplit(me->comm, me->rank / GROUP, me->rank, &group, NULL));

    for (int step = 0; step < 2; step++) {
        if (step == 1)
            load_batch(me);
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, group, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
    NCCL(ncclCommDestroy(group));
}

SUITE_CASE(.run = asleep_in_two_subgroups, .ranks = 8, .layout = PROCESSES);
