/* A PreMulSum operator is destroyed before the AllReduce that names it.
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void operator_destroyed_before(struct rank *me)
{
    float *gradients = suite_floats(COUNT), half = 0.5f;
    ncclRedOp_t scaled;

    NCCL(ncclRedOpCreatePreMulSum(&scaled, &half, ncclFloat32, ncclScalarHostImmediate, me->comm));
#ifndef TWIN
    NCCL(ncclRedOpDestroy(scaled, me->comm));
#endif
    (void)ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream); /* here */
#ifdef TWIN
    NCCL(ncclRedOpDestroy(scaled, me->comm));
#endif
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = operator_destroyed_before, .ranks = 2, .layout = THREADS);
