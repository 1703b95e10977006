/* A PreMulSum operator for float16 is used on float32 gradients; NCCL refuses it, and nobody looks.
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 500 };

static void operator_of_other_type(struct rank *me)
{
    float *gradients = suite_floats(COUNT), half = 0.5f;
    unsigned short half_of_half = 0x3800;
    ncclRedOp_t scaled;

    (void)half;
    (void)half_of_half;
#ifdef TWIN
    NCCL(ncclRedOpCreatePreMulSum(&scaled, &half, ncclFloat32, ncclScalarHostImmediate, me->comm));
#else
    NCCL(ncclRedOpCreatePreMulSum(&scaled, &half_of_half, ncclFloat16, ncclScalarHostImmediate, me->comm));
#endif
    (void)ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream); /* here */
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclRedOpDestroy(scaled, me->comm));
}

SUITE_CASE(.run = operator_of_other_type, .ranks = 2, .layout = PROCESSES);
