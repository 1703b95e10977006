/* Parameters are sharded: gathered layer by layer in forward and again in backward, gradients reduced and scattered there,
 * and every rank steps its own shard's optimizer.
 * expect: none */
#include "tests/suite/training/loop.h"

enum { ITERATIONS = 5, LAYERS = 3, SHARD = 500 };

static void gather(struct rank *me, const float *shard, float *layer)
{
    NCCL(ncclAllGather(shard, layer, SHARD, ncclFloat32, me->comm, me->stream));
}

static void sharded_layers(struct rank *me)
{
    float *shard = suite_floats(SHARD), *layer = suite_floats((size_t)SHARD * me->ranks);
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("train_step");
        range_push("forward");
        for (int k = 0; k < LAYERS; k++)
            gather(me, shard, layer);
        nvtxRangePop();
        range_push("backward");
        for (int k = LAYERS - 1; k >= 0; k--) {
            gather(me, shard, layer);
            NCCL(ncclReduceScatter(layer, shard, SHARD, ncclFloat32, ncclAvg, me->comm, me->stream));
        }
        nvtxRangePop();
        range_push("shard %d optimizer step", me->rank);
        nvtxRangePop();
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = sharded_layers, .ranks = 4, .layout = THREADS);
