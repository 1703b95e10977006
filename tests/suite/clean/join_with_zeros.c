/* Uneven inputs, done right: a rank that has run out of batches goes on to reduce zeros until all are done.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1000 };

static void join_with_zeros(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *left = suite_floats(1), others = 1;
    int batches = 3 + me->rank;

    for (int batch = 0; others > 0; batch++) {
        float more = batch + 1 < batches;

        NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaMemcpyAsync(left, &more, sizeof more, cudaMemcpyHostToDevice, me->stream));
        NCCL(ncclAllReduce(left, left, 1, ncclFloat32, ncclSum, me->comm, me->stream));
        CUDA(cudaMemcpyAsync(&others, left, sizeof others, cudaMemcpyDeviceToHost, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
    }
}

SUITE_CASE(.run = join_with_zeros, .ranks = 3, .layout = PROCESSES);
