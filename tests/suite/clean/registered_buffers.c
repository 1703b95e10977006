/* Buffers of ncclMemAlloc, registered with the communicator and used piece by piece.
 * expect: none */
#include "tests/suite/suite.h"

enum { COUNT = 1 << 16, PIECES = 4 };

static void registered_buffers(struct rank *me)
{
    void *memory, *handle;
    float *bucket;

    NCCL(ncclMemAlloc(&memory, COUNT * sizeof(float)));
    NCCL(ncclCommRegister(me->comm, memory, COUNT * sizeof(float), &handle));
    CUDA(cudaMemset(memory, 0, COUNT * sizeof(float)));
    CUDA(cudaDeviceSynchronize());
    bucket = memory;
    for (int i = 0; i < PIECES; i++)
        NCCL(ncclAllReduce(bucket + i * COUNT / PIECES, bucket + i * COUNT / PIECES, COUNT / PIECES, ncclFloat32, ncclSum,
                           me->comm, me->stream));
    CUDA(cudaStreamSynchronize(me->stream));
    NCCL(ncclCommDeregister(me->comm, handle));
    NCCL(ncclMemFree(memory));
}

SUITE_CASE(.run = registered_buffers, .ranks = 2, .layout = PROCESSES);
