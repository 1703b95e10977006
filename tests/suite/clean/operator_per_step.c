/* Each step makes a PreMulSum operator of its own and destroys it again, on four threads: NCCL gives
 * operators numbers of its own choice, which differ between ranks and grow.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 100, STEPS = 200 };

static void operator_per_step(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < STEPS; step++) {
        ncclRedOp_t average;
        float scale = 1.0f / (float)(step + 1);
        NCCL(ncclRedOpCreatePreMulSum(&average, &scale, ncclFloat32, ncclScalarHostImmediate, me->comm));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, average, me->comm, me->stream));
        NCCL(ncclRedOpDestroy(average, me->comm));
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = operator_per_step, .ranks = 4, .layout = THREADS);
