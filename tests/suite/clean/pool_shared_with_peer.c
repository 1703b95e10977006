/* Rank 0's kernel reads memory of the other GPU's pool, which was given access to by the pool, not by peer access.
 * expect: none */
#include "tests/suite/suite.h"

#include "kernels/kernels.h"

enum { COUNT = 1000 };

static void pool_shared_with_peer(struct rank *me)
{
    float *gradients = suite_floats(COUNT), *weights;
    cudaMemPool_t pool;
    cudaStream_t stream;
    struct cudaMemAccessDesc access = { .location = { .type = cudaMemLocationTypeDevice, .id = me->rank },
                                        .flags = cudaMemAccessFlagsProtReadWrite };
    int other = 1 - me->rank;

    CUDA(cudaDeviceGetDefaultMemPool(&pool, other));
    CUDA(cudaMemPoolSetAccess(pool, &access, 1));
    CUDA(cudaSetDevice(other));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMallocAsync((void **)&weights, COUNT * sizeof *weights, stream));
    CUDA(cudaMemsetAsync(weights, 0, COUNT * sizeof *weights, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaSetDevice(me->rank));
    NCCL(ncclAllReduce(gradients, gradients, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    CUDA(kernels_add(COUNT, gradients, weights, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
}

SUITE_CASE(.run = pool_shared_with_peer, .ranks = 2, .layout = PROCESSES);
