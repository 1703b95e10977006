/* memory.c: the runtime's memory allocation and pointer attributes. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emu/core/capture.h"
#include "emu/core/ipc.h"
#include "emu/core/memory.h"
#include "emu/cudart/call.h"

enum { PITCH_BYTES = 512, DEVICE_KINDS = 1 << EMU_MEMORY_DEVICE | 1 << EMU_MEMORY_MANAGED };

static int allocate(void **pointer, size_t bytes)
{
    int error = emu_capture_forbids_call();

    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    if (error || !bytes)
        return error;
    return emu_memory_allocate(emu_device_current(), bytes, NULL, pointer);
}

static int runtime_allocate_host(void **pointer, size_t bytes, enum emu_memory_kind kind,
                                 unsigned flags)
{
    if (!pointer)
        return cudaErrorInvalidValue;
    *pointer = NULL;
    return bytes ? emu_memory_allocate_host(emu_device_current(), bytes, kind, flags, pointer) : 0;
}

CALL(cudaMalloc, (void **pointer, size_t bytes), (pointer, bytes))
{
    return allocate(pointer, bytes);
}

CALL(cudaMallocPitch, (void **pointer, size_t *pitch, size_t width, size_t height),
     (pointer, pitch, width, height))
{
    if (!pitch)
        return cudaErrorInvalidValue;
    *pitch = (width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES;
    if (height && *pitch > SIZE_MAX / height)
        return cudaErrorMemoryAllocation;
    return allocate(pointer, *pitch * height);
}

CALL(cudaMalloc3D, (struct cudaPitchedPtr * pitched, struct cudaExtent extent), (pitched, extent))
{
    size_t pitch = (extent.width + PITCH_BYTES - 1) / PITCH_BYTES * PITCH_BYTES,
           slices = extent.height * extent.depth;

    if (!pitched)
        return cudaErrorInvalidValue;
    if (slices && pitch > SIZE_MAX / slices)
        return cudaErrorMemoryAllocation;
    pitched->pitch = pitch;
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return allocate(&pitched->ptr, pitch * slices);
}

CALL(cudaMallocHost, (void **pointer, size_t bytes), (pointer, bytes))
{
    return runtime_allocate_host(pointer, bytes, EMU_MEMORY_PINNED, cudaHostAllocDefault);
}

CALL(cudaHostAlloc, (void **pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
    return flags > 7 ? cudaErrorInvalidValue
                     : runtime_allocate_host(pointer, bytes, EMU_MEMORY_PINNED, flags);
}

CALL(cudaMallocManaged, (void **pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
    if (!bytes || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
        return cudaErrorInvalidValue;
    return runtime_allocate_host(pointer, bytes, EMU_MEMORY_MANAGED, flags);
}

CALL(cudaFree, (void *pointer), (pointer))
{
    return emu_memory_free_when_idle(pointer, DEVICE_KINDS);
}

CALL(cudaFreeHost, (void *pointer), (pointer))
{
    return emu_memory_free_when_idle(pointer, 1 << EMU_MEMORY_PINNED);
}

CALL(cudaHostRegister, (void *pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
    if (!pointer || !bytes || flags > 15)
        return cudaErrorInvalidValue;
    return emu_memory_register(emu_device_current(), pointer, bytes, flags);
}

CALL(cudaHostUnregister, (void *pointer), (pointer))
{
    if (!pointer)
        return cudaErrorInvalidValue;
    return emu_memory_free(pointer, 1 << EMU_MEMORY_REGISTERED) ? cudaErrorHostMemoryNotRegistered
                                                                : cudaSuccess;
}

static bool host_range(const void *pointer, struct emu_range *range)
{
    return emu_memory_look_up(pointer, range, NULL) && range->kind != EMU_MEMORY_DEVICE;
}

CALL(cudaHostGetDevicePointer, (void **device, void *host, unsigned int flags),
     (device, host, flags))
{
    struct emu_range range;

    if (!device || flags || !host_range(host, &range))
        return cudaErrorInvalidValue;
    *device = host; /* unified addresses */
    return cudaSuccess;
}

CALL(cudaHostGetFlags, (unsigned int *flags, void *host), (flags, host))
{
    struct emu_range range;

    if (!flags || !host_range(host, &range) || range.kind == EMU_MEMORY_MANAGED)
        return cudaErrorInvalidValue;
    *flags = range.flags | cudaHostAllocMapped;
    return cudaSuccess;
}

CALL(cudaMemGetInfo, (size_t * unused, size_t *total), (unused, total))
{
    struct emu_device *device = emu_device_here();

    if (!unused || !total)
        return cudaErrorInvalidValue;
    *total = device->memory_limit;
    *unused = *total - atomic_load(&device->memory_used);
    return cudaSuccess;
}

/* The struct is longer in CUDA 13: a program of CUDA 12 has a variable of 24 bytes. */
#if DDPCHECK_EMU_CUDART == 13
enum { ATTRIBUTES_BYTES = sizeof(struct cudaPointerAttributes) };
#else
enum { ATTRIBUTES_BYTES = offsetof(struct cudaPointerAttributes, reserved) };
_Static_assert(ATTRIBUTES_BYTES == 24, "the struct of CUDA 12");
#endif

CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * attributes, const void *pointer),
     (attributes, pointer))
{
    static const enum cudaMemoryType types[] = {
        [EMU_MEMORY_DEVICE] = cudaMemoryTypeDevice,
        [EMU_MEMORY_PINNED] = cudaMemoryTypeHost,
        [EMU_MEMORY_REGISTERED] = cudaMemoryTypeHost,
        [EMU_MEMORY_MANAGED] = cudaMemoryTypeManaged,
    };
    struct cudaPointerAttributes found = {
        .type = cudaMemoryTypeUnregistered, .device = -2, .hostPointer = (void *)pointer};
    struct emu_range range;

    if (!attributes || !pointer)
        return cudaErrorInvalidValue;
    if (emu_memory_look_up(pointer, &range, NULL)) {
        found.type = types[range.kind];
        found.device = range.device;
        found.devicePointer = (void *)pointer;
        if (range.kind == EMU_MEMORY_DEVICE)
            found.hostPointer = NULL;
    }
    memcpy(attributes, &found, ATTRIBUTES_BYTES);
    return cudaSuccess;
}

/* The runtime's and the driver's handles are the same 64 bytes. */
CALL(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer), (handle, pointer))
{
    return handle ? emu_ipc_export(pointer, handle) : (int)cudaErrorInvalidValue;
}

CALL(cudaIpcOpenMemHandle, (void **pointer, cudaIpcMemHandle_t handle, unsigned int flags),
     (pointer, handle, flags))
{
    if (!pointer || flags > cudaIpcMemLazyEnablePeerAccess)
        return cudaErrorInvalidValue;
    return emu_ipc_open(&handle, flags & cudaIpcMemLazyEnablePeerAccess, pointer);
}

CALL(cudaIpcCloseMemHandle, (void *pointer), (pointer))
{
    return emu_ipc_close(pointer);
}
