/* Infinity where it is ordinary: a mask of it is broadcast and gathered, and maxima begin at -Inf.
 * expect: none
 * options: --hash */
#include <math.h>

#include "tests/suite/suite.h"

enum { COUNT = 96 };

static void infinity_is_a_mask(struct rank *me)
{
    float mask[COUNT], *buffer = suite_floats(COUNT), *all = suite_floats((size_t)(COUNT * me->ranks));

    for (int i = 0; i < COUNT; i++)
        mask[i] = i % 3 ? 0 : -INFINITY;
    CUDA(cudaMemcpyAsync(buffer, mask, sizeof mask, cudaMemcpyHostToDevice, me->stream));
    NCCL(ncclBroadcast(buffer, buffer, COUNT, ncclFloat32, 0, me->comm, me->stream));
    NCCL(ncclAllGather(buffer, all, COUNT, ncclFloat32, me->comm, me->stream));
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat32, ncclMax, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = infinity_is_a_mask, .ranks = 4, .layout = THREADS);
