/* A few bytes are copied from pageable memory before each operation on a stream that does not wait for the default stream:
 * counts, seeds, a loss. The driver has taken so few when the call returns.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 16, STEPS = 4 };

static void small_pageable_copies(struct rank *me)
{
    float *device = suite_floats(COUNT), loaded[COUNT] = {0};

    for (int step = 0; step < STEPS; step++) {
        loaded[0] = (float)(me->rank + step);
        CUDA(cudaMemcpy(device, loaded, sizeof loaded, cudaMemcpyHostToDevice));
        NCCL(ncclAllReduce(device, device, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = small_pageable_copies, .ranks = 2, .layout = PROCESSES);
