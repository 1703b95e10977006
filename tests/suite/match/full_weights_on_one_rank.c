/* Rank 0 alone gathers the whole weights to save them; the others are at the gather of their metrics already. Both are an
 * AllGather of floats, so that only the counts differ.
 * expect: DC102 certain ranks=0 place=save_weights
 * fix: condition on the rank
 * ends: hang */
#include "tests/suite/suite.h"

enum { SHARD = 1000, METRICS = 20, RANKS = 4 };

static void save_weights(struct rank *me, float *shard, float *whole)
{
    NCCL(ncclAllGather(shard, whole, SHARD, ncclFloat32, me->comm, me->stream));
}

static void gather_metrics(struct rank *me, float *mine, float *all)
{
    NCCL(ncclAllGather(mine, all, METRICS, ncclFloat32, me->comm, me->stream));
}

static void full_weights_on_one_rank(struct rank *me)
{
    float *shard = suite_floats(SHARD), *whole = suite_floats(RANKS * SHARD);
    float *mine = suite_floats(METRICS), *all = suite_floats(RANKS * METRICS);

#ifndef TWIN
    if (me->rank == 0)
#endif
        save_weights(me, shard, whole);
    gather_metrics(me, mine, all);
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = full_weights_on_one_rank, .ranks = 4, .layout = PROCESSES);
