/* Rank 0 walks its table of shards backwards in every step: a shard is never reduced with its own.
 * expect: DC112 possible ranks=0 place=reduce */
#include "tests/suite/suite.h"

enum { COUNT = 256, SHARDS = 2, STEPS = 3 };

static void reduce(struct rank *me, const float *shard, float *sum)
{
    NCCL(ncclReduceScatter(shard, sum, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
}

static void buffers_crossed_always(struct rank *me)
{
    float *shard[SHARDS], *sum = suite_floats(COUNT);

    for (int i = 0; i < SHARDS; i++)
        shard[i] = suite_floats(COUNT * 4);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < SHARDS; i++) {
            int mine = i;
#ifndef TWIN
            if (me->rank == 0)
                mine = SHARDS - 1 - i;
#endif
            reduce(me, shard[mine], sum);
        }
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = buffers_crossed_always, .ranks = 4, .layout = PROCESSES);
