/* Some ranks call ncclBcast, the others ncclBroadcast: two names of one operation.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 77 };

static void old_and_new_broadcast(struct rank *me)
{
    float *parameters = suite_floats(COUNT);

    if (me->rank % 2)
        NCCL(ncclBcast(parameters, COUNT, ncclFloat32, 0, me->comm, me->stream));
    else
        NCCL(ncclBroadcast(parameters, parameters, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = old_and_new_broadcast, .ranks = 4, .layout = THREADS);
