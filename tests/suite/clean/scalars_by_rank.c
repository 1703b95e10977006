/* Each rank scales its gradients by one over its own batch size with ncclRedOpCreatePreMulSum: the scalar is applied to the
 * rank's own input, so it may differ.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void scalars_by_rank(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    float scale = 1 / (32.0f - (float)me->rank);
    ncclRedOp_t scaled;

    NCCL(ncclRedOpCreatePreMulSum(&scaled, &scale, ncclFloat32, ncclScalarHostImmediate, me->comm));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclRedOpDestroy(scaled, me->comm));
}

SUITE_CASE(.run = scalars_by_rank, .ranks = 4, .layout = PROCESSES);
