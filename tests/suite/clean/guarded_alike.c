/* Calls that differ in their arguments and mean the same are not refused by --guard: the old and the new
 * broadcast, scalars of each rank's own, roots by turns, collectives of no elements on one rank, a group.
 * expect: none
 * options: --guard */
#include "tests/suite/suite.h"

enum { ELEMENTS = 16, STEPS = 50 };

static void step(struct rank *me, float *x, ncclRedOp_t scaled, int root)
{
    if (me->rank == 1)
        NCCL(ncclBcast(x, ELEMENTS, ncclFloat32, root, me->comm, me->stream));
    else
        NCCL(ncclBroadcast(x, x, ELEMENTS, ncclFloat32, root, me->comm, me->stream));
    if (me->rank == 2)
        NCCL(ncclAllReduce(x, x, 0, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(x, x, ELEMENTS, ncclFloat32, scaled, me->comm, me->stream));
    NCCL(ncclReduce(x + ELEMENTS, x + ELEMENTS, ELEMENTS / 2, ncclFloat32, ncclMax, root, me->comm, me->stream));
    NCCL(ncclGroupEnd());
}

static void guarded_alike(struct rank *me)
{
    float *x = suite_floats(2 * ELEMENTS), scalar = 1.0f / (float)(me->rank + 1);
    ncclRedOp_t scaled;

    NCCL(ncclRedOpCreatePreMulSum(&scaled, &scalar, ncclFloat32, ncclScalarHostImmediate, me->comm));
    for (int i = 0; i < STEPS; i++)
        step(me, x, scaled, i % me->ranks);
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclRedOpDestroy(scaled, me->comm));
}

SUITE_CASE(.run = guarded_alike, .ranks = 3, .layout = PROCESSES);
