/* Rank 0 aborts on an assertion between two groups of sends; its neighbours of the ring wait.
 * expect: DC205 certain ranks=0
 * ends: hang */
#include "tests/suite/suite.h"

#include <stdlib.h>

enum { COUNT = 1000 };

static void pass_on(struct rank *me, float *out, float *in)
{
    NCCL(ncclGroupStart());
    NCCL(ncclSend(out, COUNT, ncclFloat32, (me->rank + 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclRecv(in, COUNT, ncclFloat32, (me->rank + me->ranks - 1) % me->ranks, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(me->stream));
}

static void aborted_in_group(struct rank *me)
{
    float *out = suite_floats(COUNT), *in = suite_floats(COUNT);

    pass_on(me, out, in);
#ifndef TWIN
    if (me->rank == 0)
        abort();
#endif
    pass_on(me, in, out);
}

SUITE_CASE(.run = aborted_in_group, .ranks = 3, .layout = PROCESSES);
