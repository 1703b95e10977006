/* cudaFree while the AllReduce may still run: it waits for the device.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16, STEPS = 4 };

static void freed_while_reduced(struct rank *me)
{
    for (int step = 0; step < STEPS; step++) {
        float *bucket = suite_floats(COUNT);

        NCCL(ncclAllReduce(bucket, bucket, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaFree(bucket));
    }
}

SUITE_CASE(.run = freed_while_reduced, .ranks = 4, .layout = PROCESSES);
