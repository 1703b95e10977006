/* memory.c: the driver's memory allocation. */
#include "emu/core/memory.h"

#include "emu/core/attributes.h"
#include "emu/core/capture.h"
#include "emu/core/ipc.h"
#include "emu/core/pool.h"
#include "emu/driver/call.h"

static int driver_allocate_host(void **pointer, size_t bytes, enum emu_memory_kind kind,
                                unsigned flags)
{
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return emu_memory_allocate_host(emu_device_current(), bytes, kind, flags, pointer);
}

CONTEXT_CALL(cuMemAlloc_v2, (CUdeviceptr * pointer, size_t bytes), (pointer, bytes))
{
    int error = emu_capture_forbids_call();

    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return error ? error : emu_memory_allocate(emu_device_current(), bytes, NULL, (void **)pointer);
}

CONTEXT_CALL(cuMemFree_v2, (CUdeviceptr pointer), (pointer))
{
    return emu_memory_free_when_idle((void *)pointer,
                                     1 << EMU_MEMORY_DEVICE | 1 << EMU_MEMORY_MANAGED);
}

CONTEXT_CALL(cuMemAllocHost_v2, (void **pointer, size_t bytes), (pointer, bytes))
{
    return driver_allocate_host(pointer, bytes, EMU_MEMORY_PINNED, 0);
}

CONTEXT_CALL(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned int flags),
             (pointer, bytes, flags))
{
    return driver_allocate_host(pointer, bytes, EMU_MEMORY_PINNED, flags);
}

CONTEXT_CALL(cuMemFreeHost, (void *pointer), (pointer))
{
    return emu_memory_free_when_idle(pointer, 1 << EMU_MEMORY_PINNED);
}

CONTEXT_CALL(cuMemAllocManaged, (CUdeviceptr * pointer, size_t bytes, unsigned int flags),
             (pointer, bytes, flags))
{
    return driver_allocate_host((void **)pointer, bytes, EMU_MEMORY_MANAGED, flags);
}

CONTEXT_CALL(cuMemHostRegister_v2, (void *pointer, size_t bytes, unsigned int flags),
             (pointer, bytes, flags))
{
    if (!pointer || !bytes || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    return emu_memory_register(emu_device_current(), pointer, bytes, flags);
}
DRIVER_ALIAS("cuMemHostRegister", "cuMemHostRegister_v2");

CONTEXT_CALL(cuMemHostUnregister, (void *pointer), (pointer))
{
    return emu_memory_free(pointer, 1 << EMU_MEMORY_REGISTERED)
               ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
               : 0;
}

CONTEXT_CALL(cuMemHostGetDevicePointer_v2, (CUdeviceptr * device, void *host, unsigned int flags),
             (device, host, flags))
{
    struct emu_range range;

    if (!device || flags || !emu_memory_look_up(host, &range, NULL) ||
        range.kind == EMU_MEMORY_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *device = (CUdeviceptr)host; /* unified addresses */
    return 0;
}
DRIVER_ALIAS("cuMemHostGetDevicePointer", "cuMemHostGetDevicePointer_v2");

CONTEXT_CALL(cuMemHostGetFlags, (unsigned int *flags, void *host), (flags, host))
{
    struct emu_range range;

    if (!flags || !emu_memory_look_up(host, &range, NULL) || range.kind == EMU_MEMORY_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return 0;
}

CONTEXT_CALL(cuMemGetInfo_v2, (size_t * unused, size_t *total), (unused, total))
{
    const struct emu_device *device = emu_device_here();

    if (!unused || !total)
        return CUDA_ERROR_INVALID_VALUE;
    *total = device->memory_limit;
    *unused = *total - atomic_load(&device->memory_used);
    return 0;
}

CONTEXT_CALL(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr pointer),
             (base, bytes, pointer))
{
    struct emu_range range;

    if (!emu_memory_look_up((void *)pointer, &range, NULL))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = range.base;
    if (bytes)
        *bytes = range.bytes;
    return 0;
}

STREAM_CALL(cuMemAllocAsync, cuMemAllocAsync_ptsz,
            (CUdeviceptr * pointer, size_t bytes, CUstream stream), (pointer, bytes, stream))
{
    struct emu_stream *found;
    int error;

    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_stream(stream, &found, &error))
        return error;
    return emu_pool_allocate(atomic_load(&emu_device_get(emu_stream_device(found))->pool), found,
                             bytes, (void **)pointer);
}

STREAM_CALL(cuMemFreeAsync, cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream),
            (pointer, stream))
{
    struct emu_stream *found;
    int error;

    return driver_stream(stream, &found, &error) ? emu_pool_release(found, (void *)pointer) : error;
}

CONTEXT_CALL(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr pointer), (handle, pointer))
{
    return handle ? emu_ipc_export((void *)pointer, handle) : (int)CUDA_ERROR_INVALID_VALUE;
}

CONTEXT_CALL(cuIpcOpenMemHandle_v2,
             (CUdeviceptr * pointer, CUipcMemHandle handle, unsigned int flags),
             (pointer, handle, flags))
{
    if (!pointer || flags > CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    return emu_ipc_open(&handle, flags & CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, (void **)pointer);
}

CONTEXT_CALL(cuIpcCloseMemHandle, (CUdeviceptr pointer), (pointer))
{
    return emu_ipc_close((void *)pointer);
}
