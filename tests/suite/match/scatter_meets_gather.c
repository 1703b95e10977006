/* Two threads of four mean to collect results, the others to hand out work.
 * expect: DC101 certain ranks=2-3+0-1 place=scatter_meets_gather
 * ends: any */
#include "tests/suite/suite.h"

enum { COUNT = 100 };

static void scatter_meets_gather(struct rank *me)
{
    float *mine = suite_floats(COUNT), *all = suite_floats(COUNT * 4);
#ifdef TWIN
    bool collects = true;
#else
    bool collects = me->rank < 2;
#endif

    if (collects)
        NCCL(ncclGather(mine, all, COUNT, ncclFloat32, 0, me->comm, me->stream));
    else
        NCCL(ncclScatter(all, mine, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = scatter_meets_gather, .ranks = 4, .layout = THREADS);
