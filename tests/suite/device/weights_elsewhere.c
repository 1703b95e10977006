/* Rank 1 launches a kernel on its GPU with weights that were put on another, without peer access.
 * expect: DC403 certain ranks=1
 * ends: any
 * minimal: yes */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void weights_elsewhere(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *weights;

#ifndef TWIN
    if (me->rank == 1)
        CUDA(cudaSetDevice(0));
#endif
    weights = suite_floats(COUNT);
    CUDA(cudaSetDevice(me->rank));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(kernels_add(COUNT, gradients, weights, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = weights_elsewhere, .ranks = 2, .layout = PROCESSES);
