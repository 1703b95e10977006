/* Rank 0 gives its PreMulSum scalar in device memory, rank 1 the same value from the host.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void scalar_on_device(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *on_device = suite_floats(1), half = 0.5f;
    ncclRedOp_t scaled;

    CUDA(cudaMemcpy(on_device, &half, sizeof half, cudaMemcpyHostToDevice));
    NCCL(ncclRedOpCreatePreMulSum(&scaled, me->rank == 0 ? on_device : &half, ncclFloat32,
                                  me->rank == 0 ? ncclScalarDevice : ncclScalarHostImmediate, me->comm));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, scaled, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclRedOpDestroy(scaled, me->comm));
}

SUITE_CASE(.run = scalar_on_device, .ranks = 2, .layout = PROCESSES);
