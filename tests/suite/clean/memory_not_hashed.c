/* Pinned host memory, memory of a pool that is freed behind the operation, and managed memory that the host writes after
 * it waited.
 * expect: none
 * options: --hash */
#include "tests/suite/suite.h"

enum { COUNT = 3000, STEPS = 8 };

static void memory_not_hashed(struct rank *me)
{
    float *pinned, *managed, *pooled;

    CUDA(cudaMallocHost((void **)&pinned, COUNT * sizeof *pinned));
    CUDA(cudaMallocManaged((void **)&managed, COUNT * sizeof *managed, cudaMemAttachGlobal));
    CUDA(cudaMemset(managed, 0, COUNT * sizeof *managed));
    for (int i = 0; i < COUNT; i++)
        pinned[i] = (float)(me->rank * i);
    CUDA(cudaDeviceSynchronize());
    for (int step = 0; step < STEPS; step++) {
        NCCL(ncclAllReduce(pinned, pinned, COUNT, ncclFloat32, ncclMax, me->comm, me->stream));
        CUDA(cudaMallocAsync((void **)&pooled, COUNT * sizeof *pooled, me->stream));
        CUDA(cudaMemsetAsync(pooled, step + me->rank, COUNT * sizeof *pooled, me->stream));
        NCCL(ncclAllReduce(pooled, managed, COUNT, ncclInt32, ncclSum, me->comm, me->stream));
        CUDA(cudaFreeAsync(pooled, me->stream));
        CUDA(cudaStreamSynchronize(me->stream));
        managed[step] = (float)me->rank;
    }
    CUDA(cudaFree(managed));
    CUDA(cudaFreeHost(pinned));
}

SUITE_CASE(.run = memory_not_hashed, .ranks = 2, .layout = THREADS);
