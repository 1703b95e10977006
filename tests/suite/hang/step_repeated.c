/* Rank 1 catches a transient error after its third step and does the step again, with its reduction.
 * expect: DC206 certain ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 1000, STEPS = 5 };

static bool has_to_repeat(int rank, int step)
{
#ifdef TWIN
    (void)rank;
    return step == 2;           /* agreed upon by all */
#else
    return rank == 1 && step == 2;
#endif
}

static void step_repeated(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++)
        for (int tries = has_to_repeat(me->rank, step) ? 2 : 1; tries > 0; tries--) {
            NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, me->stream));
            CUDA(cudaStreamSynchronize(me->stream));
        }
}

SUITE_CASE(.run = step_repeated, .ranks = 8, .layout = PROCESSES);
