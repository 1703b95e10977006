/* Buffers of pinned host memory and of managed memory, which GPUs can reach.
 * expect: none */
#include "tests/suite/suite.h"

#include <string.h>

enum { COUNT = 1000 };

static void host_memory(struct rank *me)
{
    float *pinned, *managed;

    CUDA(cudaMallocHost((void **)&pinned, COUNT * sizeof(float)));
    CUDA(cudaMallocManaged((void **)&managed, COUNT * sizeof(float), cudaMemAttachGlobal));
    memset(pinned, 0, COUNT * sizeof(float));
    memset(managed, 0, COUNT * sizeof(float));
    NCCL(ncclAllReduce(pinned, pinned, COUNT, ncclFloat32, ncclSum, me->comm, me->stream));
    NCCL(ncclBroadcast(managed, managed, COUNT, ncclFloat32, 1, me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    CUDA(cudaFree(managed));
    CUDA(cudaFreeHost(pinned));
}

SUITE_CASE(.run = host_memory, .ranks = 2, .layout = PROCESSES);
