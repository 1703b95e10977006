/* Rank 0 alone evaluates at the end of the epoch and broadcasts the score there; from then on its calls are one place off.
 * expect: DC101 certain ranks=0 place=evaluate
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 4096, STEPS = 6 };

static void evaluate(struct rank *me, float *score)
{
    NCCL(ncclBroadcast(score, score, 1, ncclFloat32, 0, me->comm, me->stream));
}

static void extra_call_in_branch(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *score = suite_floats(1);

    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
#ifdef TWIN
        if (step == 3)
#else
        if (step == 3 && me->rank == 0)
#endif
            evaluate(me, score);
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = extra_call_in_branch, .ranks = 4, .layout = THREADS);
