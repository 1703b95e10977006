/* Each rank scales its gradients by one over its own batch size with ncclRedOpCreatePreMulSum; rank 1 has another batch size
 * than the rest. It may be meant, so it is only possible.
 * expect: DC104 possible ranks=1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void scalars_differ(struct rank *me)
{
    float *gradients = suite_floats(COUNT);
    ncclRedOp_t scaled;

#ifdef TWIN
    float scale = 1 / 32.0f;
#else
    float scale = me->rank == 1 ? 1 / 31.0f : 1 / 32.0f;
#endif
    NCCL(ncclRedOpCreatePreMulSum(&scaled, &scale, ncclFloat32, ncclScalarHostImmediate, me->comm));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream));    /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclRedOpDestroy(scaled, me->comm));
}

SUITE_CASE(.run = scalars_differ, .ranks = 4, .layout = PROCESSES);
