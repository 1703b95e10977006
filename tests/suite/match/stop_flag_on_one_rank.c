/* Each rank decides by its own score when to stop. A flag is reduced in every step, and yet the decision is not shared: rank 2
 * leaves its training loop and saves, where the others reduce their next gradients.
 * expect: DC101 certain ranks=2
 * origin: rank 2 left train() after the common call at share_score() .. the others went on at backward()
 * fix: Let all ranks leave together
 * ends: hang */
#include "tests/suite/suite.h"

enum { COUNT = 500, STEPS = 6 };

static void backward(struct rank *me, float *gradients)
{
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void share_score(struct rank *me, float *score)
{
    NCCL(ncclAllGather(score + me->rank, score, 1, ncclFloat32, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void train(struct rank *me, float *gradients, int steps)
{
    for (int step = 0; step < steps; step++) {
        backward(me, gradients);
        share_score(me, gradients);
    }
}

static void stop_flag_on_one_rank(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    int steps = STEPS;

#ifndef TWIN
    steps -= me->rank == 2 ? 2 : 0;
#endif
    train(me, gradients, steps);
    NCCL(ncclBroadcast(gradients, gradients, COUNT, ncclFloat32, 0, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = stop_flag_on_one_rank, .ranks = 4, .layout = PROCESSES);
