/* Batch normalisation on GPU 1 with running statistics that stayed on GPU 0: one of many pointers.
 * expect: DC403 certain ranks=1
 * ends: any */
#include "tests/suite/suite.h"

#include "kernels/kernels.h"

enum { N = 4, C = 8, PIXELS = 16 };

static void statistics_elsewhere(struct rank *me)
{
    float *x = suite_floats(N * C * PIXELS), *y = suite_floats(N * C * PIXELS), *gamma = suite_floats(C), *beta = suite_floats(C);
    float *mean = suite_floats(C), *inv_std = suite_floats(C), *running_mean = suite_floats(C), *running_var;

#ifndef TWIN
    CUDA(cudaSetDevice(0));
#endif
    running_var = suite_floats(C);
    CUDA(cudaSetDevice(me->rank));
    NCCL(ncclAllReduce(x, x, N * C * PIXELS, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(kernels_batch_norm_forward(N, C, PIXELS, x, gamma, beta, running_mean, running_var, 0.1f, 1e-5f, mean, inv_std, y,
                                    me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = statistics_elsewhere, .ranks = 2, .layout = PROCESSES);
