/* api_memory.c: ncclMemAlloc is device memory like any other. */
#include <nccl.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"
#include "emu/core/stream.h"
#include "emu/nccl/errors.h"

PUBLIC(ncclMemAlloc);
ncclResult_t ncclMemAlloc(void **pointer, size_t bytes)
{
    int error;

    if (!pointer)
        return fail(ncclInvalidArgument, "ncclMemAlloc : the argument for the pointer is NULL");
    *pointer = NULL; /* what 0 bytes give */
    if (!bytes)
        return ncclSuccess;
    error = emu_memory_allocate(emu_device_current(), bytes, NULL, pointer);
    return error ? fail(ncclUnhandledCudaError, "Cuda failure %d : can't allocate %zu bytes", error,
                        bytes)
                 : ncclSuccess;
}

/* Waits for the device first, as cudaFree. */
PUBLIC(ncclMemFree);
ncclResult_t ncclMemFree(void *pointer)
{
    struct emu_range range;
    int error;

    if (!pointer)
        return ncclSuccess;
    if (!emu_memory_look_up(pointer, &range, NULL))
        return fail(ncclInvalidArgument, "ncclMemFree : %p is not device memory", pointer);
    error = emu_stream_synchronize_device(emu_device_get(range.device));
    if (!error)
        error = emu_memory_free(pointer, 1u << EMU_MEMORY_DEVICE);
    return error ? fail(ncclUnhandledCudaError, "Cuda failure %d : can't free %p", error, pointer)
                 : ncclSuccess;
}
