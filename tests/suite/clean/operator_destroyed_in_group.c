/* An operator is destroyed right after the call that names it, before the group ends: NCCL has copied what it needs.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void operator_destroyed_in_group(struct rank *me)
{
    float *gradients = suite_floats(COUNT), half = 0.5f;
    ncclRedOp_t scaled;

    for (int step = 0; step < 3; step++) {
        NCCL(ncclGroupStart());
        NCCL(ncclRedOpCreatePreMulSum(&scaled, &half, ncclFloat32, ncclScalarHostImmediate, me->comm));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream));
        NCCL(ncclRedOpDestroy(scaled, me->comm));
        NCCL(ncclGroupEnd());
    }
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = operator_destroyed_in_group, .ranks = 2, .layout = PROCESSES);
