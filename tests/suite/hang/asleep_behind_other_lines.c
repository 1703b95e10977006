/* Rank 0 calls from a branch of its own in each step, on purpose. Rank 1 falls asleep in the last step: the other lines are not
 * why, and no earlier call is named.
 * expect: DC201 possible ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100, STEPS = 6 };

static void sum(struct rank *me, float *data)
{
    NCCL(ncclAllReduce(data, data, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void log_and_sum(struct rank *me, float *data)
{
    sum(me, data);
}

static void asleep_behind_other_lines(struct rank *me)
{
    float *data = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
        sum(me, data);
        if (me->rank == 0)
            log_and_sum(me, data);
        else
            sum(me, data);
        CUDA(cudaStreamSynchronize(me->stream));
#ifndef TWIN
        while (me->rank == 1 && step == STEPS - 2)
            suite_nap_ms(1000);
#endif
    }
}

SUITE_CASE(.run = asleep_behind_other_lines, .ranks = 3, .layout = PROCESSES);
