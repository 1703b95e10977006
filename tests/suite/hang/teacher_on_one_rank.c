/* Rank 1 takes the teacher's path where the others decode. Both make calls that look the same to NCCL, the others one more. What
 * rank 1 left out can't be said; where the lines part can.
 * expect: DC206|DC201 certain ranks=1
 * origin: the lines of rank 1 and the others last agreed at #4; at #5 rank 1 was at teacher() called at .. the others at decode() called at
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 100, STEPS = 5 };

static void sum(struct rank *me, float *data)
{
    NCCL(ncclAllReduce(data, data, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void teacher(struct rank *me, float *data)
{
    sum(me, data);
    sum(me, data);
}

static void decode(struct rank *me, float *data)
{
    sum(me, data);
    sum(me, data);
    sum(me, data);
}

static void teacher_on_one_rank(struct rank *me)
{
    float *data = suite_floats(COUNT);
    bool teaches = false;

    for (int step = 0; step < STEPS; step++)
        sum(me, data);
#ifndef TWIN
    teaches = me->rank == 1;
#endif
    if (teaches)
        teacher(me, data);
    else
        decode(me, data);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = teacher_on_one_rank, .ranks = 4, .layout = PROCESSES);
