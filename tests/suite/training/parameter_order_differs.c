/* Rank 3 builds its model from a set: the parameters, and with them the buckets, come in another order.
 * expect: DC110 certain ranks=3+0-2 place=reduce
 * ends: hang */
#include "tests/suite/training/loop.h"

enum { LAYERS = 4, ITERATIONS = 3 };

static const size_t size[LAYERS] = { 3000, 1000, 640, 10 };

static void reduce(struct rank *me, float *gradients, const int *order)
{
    for (int i = 0; i < LAYERS; i++)
        NCCL(ncclAllReduce(gradients, gradients, size[order[i]], ncclFloat32, ncclSum, me->comm, me->stream));
}

static void parameter_order_differs(struct rank *me)
{
    static const int built[LAYERS] = { 0, 1, 2, 3 };
    float *gradients = suite_floats(size[0]);
#ifdef TWIN
    const int *order = built;
#else
    static const int from_set[LAYERS] = { 2, 0, 1, 3 };
    const int *order = me->rank == 3 ? from_set : built;
#endif
    for (int i = 0; i < ITERATIONS; i++) {
        range_push("iteration %d", i);
        reduce(me, gradients, order);
        nvtxRangePop();
        wait_for_step(me);
    }
}

SUITE_CASE(.run = parameter_order_differs, .ranks = 4, .layout = PROCESSES);
