/* Each rank decides by its own loss whether to stop early; rank 2 stops two steps before the others and leaves.
 * expect: DC206 certain ranks=0-1,3
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 500, STEPS = 6 };

static bool patience_is_over(int rank, int step)
{
#ifdef TWIN
    (void)rank;
    return step == 4;           /* decided by rank 0 and broadcast, here known to all */
#else
    return rank == 2 && step == 4;
#endif
}

static void early_stop_on_one_rank(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *norms = suite_floats(1);

    for (int step = 0; step < STEPS && !patience_is_over(me->rank, step); step++) {
        NCCL(ncclAllReduce(norms, norms, 1, ncclFloat32, ncclSum, me->comm, me->stream));
        NCCL(ncclReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, 0, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = early_stop_on_one_rank, .ranks = 4, .layout = PROCESSES);
