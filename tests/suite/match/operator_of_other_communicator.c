/* A PreMulSum operator that was made for the data-parallel group is used on the world's communicator.
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void operator_of_other_communicator(struct rank *me)
{
    float *gradients = suite_floats(COUNT), half = 0.5f;
    ncclComm_t group;
    ncclRedOp_t scaled;

    NCCL(ncclCommSplit(me->comm, 0, me->rank, &group, NULL));
    NCCL(ncclRedOpCreatePreMulSum(&scaled, &half, ncclFloat32, ncclScalarHostImmediate, group));
#ifdef TWIN
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, group, me->stream));
#else
    (void)ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream); /* here */
#endif
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclRedOpDestroy(scaled, group));
    NCCL(ncclCommDestroy(group));
}

SUITE_CASE(.run = operator_of_other_communicator, .ranks = 2, .layout = PROCESSES);
