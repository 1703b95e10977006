/* Every rank has made and destroyed other PreMulSum operators before, so that the handles differ; the scalars are equal.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void scaled_by_different_handles(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    ncclRedOp_t unused[4], scaled;
    float other = 2, scale = 0.25f;

    for (int i = 0; i < me->rank; i++)
        NCCL(ncclRedOpCreatePreMulSum(&unused[i], &other, ncclFloat32, ncclScalarHostImmediate, me->comm));
    NCCL(ncclRedOpCreatePreMulSum(&scaled, &scale, ncclFloat32, ncclScalarHostImmediate, me->comm));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclRedOpDestroy(scaled, me->comm));
    for (int i = 0; i < me->rank; i++)
        NCCL(ncclRedOpDestroy(unused[i], me->comm));
}

SUITE_CASE(.run = scaled_by_different_handles, .ranks = 4, .layout = PROCESSES);
