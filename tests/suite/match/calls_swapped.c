/* Two ranks reduce the statistics before they gather the predictions, the others the other way round.
 * expect: DC101 certain ranks=2-3+0-1 place=calls_swapped
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 300 };

static void calls_swapped(struct rank *me)
{
    float *statistics = suite_floats(COUNT), *predictions = suite_floats((size_t)COUNT * me->ranks);
#ifdef TWIN
    bool gather_first = false;
#else
    bool gather_first = me->rank >= 2;
#endif

    if (gather_first)
        NCCL(ncclAllGather(statistics, predictions, COUNT, ncclFloat32, me->comm, me->stream));
    NCCL(ncclAllReduce(statistics, statistics, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    if (!gather_first)
        NCCL(ncclAllGather(statistics, predictions, COUNT, ncclFloat32, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = calls_swapped, .ranks = 4, .layout = PROCESSES);
