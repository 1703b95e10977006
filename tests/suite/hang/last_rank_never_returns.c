/* Two ranks have finished and exited; rank 0 polls something on the host that never comes. Nobody waits in NCCL.
 * expect: DC211 possible ranks=0
 * options: --timeout 3
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void last_rank_never_returns(struct rank *me)
{
    float *x = suite_floats(COUNT);

    NCCL(ncclAllReduce(x, x, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
    if (me->rank == 0)
        suite_await(me, 0);
#endif
}

SUITE_CASE(.run = last_rank_never_returns, .ranks = 3, .layout = PROCESSES);
