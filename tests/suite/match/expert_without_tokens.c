/* A batch without tokens for its experts makes rank 2 return early from that layer, whose AllGather the others make. In the
 * steps before, every rank made it between those of router and head.
 * expect: DC102 certain ranks=2
 * origin: rank 2 left out the call at expert() .. which came before the one at head()
 * fix: no tokens
 * ends: hang */
#include "tests/suite/suite.h"

enum { STEPS = 5, MOST = 400 };

static void collect(struct rank *me, float *weights, size_t count)
{
    NCCL(ncclAllGather(weights + me->rank * count, weights, count, ncclFloat32, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

static void router(struct rank *me, float *weights)
{
    collect(me, weights, 10);
}

static void expert(struct rank *me, float *weights, bool is_empty)
{
    if (!is_empty)
        collect(me, weights, 100);
}

static void head(struct rank *me, float *weights)
{
    collect(me, weights, 30);
}

static void expert_without_tokens(struct rank *me)
{
    float *weights = suite_floats(MOST);
    bool is_empty = false;

    for (int step = 0; step < STEPS; step++) {
#ifndef TWIN
        is_empty = me->rank == 2 && step == 3;
#endif
        router(me, weights);
        expert(me, weights, is_empty);
        head(me, weights);
    }
}

SUITE_CASE(.run = expert_without_tokens, .ranks = 3, .layout = PROCESSES);
