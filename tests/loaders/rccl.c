/* rccl.c: what RCCL and HIP have beside NCCL's functions, for rccl_job.c: RCCL's own collectives,
 * made of its messages, and the calls of HIP that the program makes, on the emulated device. With
 * the emulated NCCL it is librccl.so.1. */
#include "abi/nccl_later.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/stream.h"
#include "tests/loaders/body.h"

#define RCCL __attribute__((visibility("default")))

RCCL ncclResult_t ncclAllToAll(const void *send, void *recv, size_t count, ncclDataType_t type,
                               ncclComm_t comm, cudaStream_t stream)
{
    return ncclAlltoAll(send, recv, count, type, comm, stream);
}

RCCL ncclResult_t ncclAllToAllv(const void *send, const size_t *send_counts,
                                const size_t *send_offsets, void *recv, const size_t *recv_counts,
                                const size_t *recv_offsets, ncclDataType_t type, ncclComm_t comm,
                                cudaStream_t stream)
{
    enum { ELEMENT = 4 };
    int ranks = 0;

    ncclCommCount(comm, &ranks);
    ncclGroupStart();
    for (int peer = 0; peer < ranks; peer++) {
        if (send_counts[peer])
            ncclSend((const char *)send + send_offsets[peer] * ELEMENT, send_counts[peer], type,
                     peer, comm, stream);
        if (recv_counts[peer])
            ncclRecv((char *)recv + recv_offsets[peer] * ELEMENT, recv_counts[peer], type, peer,
                     comm, stream);
    }
    return ncclGroupEnd();
}

RCCL int hipSetDevice(int device)
{
    return emu_device_set(device);
}

RCCL int hipMalloc(void **memory, size_t bytes)
{
    return emu_memory_allocate(emu_device_current(), bytes, NULL, memory);
}

RCCL int hipStreamCreate(cudaStream_t *stream)
{
    *stream = (cudaStream_t)emu_stream_create_here(0, 0);
    return !*stream;
}

RCCL int hipStreamSynchronize(cudaStream_t stream)
{
    return emu_stream_synchronize(emu_stream_find(stream));
}
