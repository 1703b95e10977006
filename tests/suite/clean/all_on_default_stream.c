/* Everything runs on the default stream: fills, collectives and reads are in order by themselves.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12, STEPS = 4 };

static void all_on_default_stream(struct rank *me)
{
    static float host[COUNT];
    float *gradients = suite_floats(COUNT), *weights = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
        CUDA(kernels_fill(COUNT, 1, gradients, NULL));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, NULL));
        CUDA(kernels_add(COUNT, gradients, weights, NULL));
        CUDA(cudaMemcpy(host, weights, sizeof host, cudaMemcpyDeviceToHost));
    }
}

SUITE_CASE(.run = all_on_default_stream, .ranks = 4, .layout = PROCESSES);
