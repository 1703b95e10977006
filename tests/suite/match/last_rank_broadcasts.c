/* The last of eight ranks takes the branch for evaluation and broadcasts where the others reduce.
 * expect: DC101 certain ranks=7 place=here
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void last_rank_broadcasts(struct rank *me)
{
    float *values = suite_floats(COUNT);
#ifdef TWIN
    bool evaluates = false;
#else
    bool evaluates = me->rank == me->ranks - 1;
#endif

    for (int step = 0; step < 3; step++) {
        if (evaluates && step == 1)
            NCCL(ncclBroadcast(values, values, COUNT, ncclFloat32, 0, me->comm, me->stream)); /* here */
        else
            NCCL(ncclAllReduce(values, values, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = last_rank_broadcasts, .ranks = 8, .layout = PROCESSES);
