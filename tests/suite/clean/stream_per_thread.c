/* Each thread uses its own default stream, cudaStreamPerThread, for all of its work.
 * expect: none */
#include "kernels/kernels.h"
#include "tests/suite/suite.h"

enum { COUNT = 1 << 12 };

static void stream_per_thread(struct rank *me)
{
    float *gradients = suite_floats(COUNT);

    for (int step = 0; step < 3; step++) {
        CUDA(kernels_fill(COUNT, 1, gradients, cudaStreamPerThread));
        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclAvg, me->comm, cudaStreamPerThread));
        CUDA(kernels_scale(COUNT, 0.5f, gradients, cudaStreamPerThread));
    }
    CUDA(cudaStreamSynchronize(cudaStreamPerThread));
}

SUITE_CASE(.run = stream_per_thread, .ranks = 2, .layout = THREADS);
