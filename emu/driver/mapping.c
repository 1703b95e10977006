/* mapping.c: the driver's virtual memory management. */
#include "emu/core/mapping.h"

#include "emu/core/memory.h"
#include "emu/driver/call.h"

static struct emu_physical *physical_of(CUmemGenericAllocationHandle handle)
{
    return (struct emu_physical *)(uintptr_t)handle;
}

/* Handles that other processes could open are made as files are; fabric handles are not. */
static int check_properties(const CUmemAllocationProp *properties)
{
    if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_device_get(properties->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    return properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
               ? CUDA_ERROR_NOT_SUPPORTED
               : 0;
}

DRIVER_CALL(cuMemGetAllocationGranularity,
            (size_t * granularity, const CUmemAllocationProp *properties,
             CUmemAllocationGranularity_flags option),
            (granularity, properties, option))
{
    int error = check_properties(properties);

    if (!granularity || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    *granularity = EMU_MAPPING_GRANULE;
    return error;
}

DRIVER_CALL(cuMemAddressReserve,
            (CUdeviceptr * base, size_t bytes, size_t alignment, CUdeviceptr wanted,
             unsigned long long flags),
            (base, bytes, alignment, wanted, flags))
{
    uintptr_t found;

    if (!base || flags)
        return CUDA_ERROR_INVALID_VALUE;
    int error = emu_mapping_reserve(bytes, alignment, wanted, &found);
    if (!error)
        *base = found;
    return error;
}

DRIVER_CALL(cuMemAddressFree, (CUdeviceptr base, size_t bytes), (base, bytes))
{
    return emu_mapping_unreserve(base, bytes);
}

CONTEXT_CALL(cuMemCreate,
             (CUmemGenericAllocationHandle * handle, size_t bytes,
              const CUmemAllocationProp *properties, unsigned long long flags),
             (handle, bytes, properties, flags))
{
    struct emu_physical *physical;
    int error = check_properties(properties);

    if (!handle || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!error)
        error = emu_physical_new(properties->location.id, bytes, &physical);
    if (!error)
        *handle = (uintptr_t)physical;
    return error;
}

DRIVER_CALL(cuMemRelease, (CUmemGenericAllocationHandle handle), (handle))
{
    return emu_physical_release(physical_of(handle));
}

DRIVER_CALL(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *pointer),
            (handle, pointer))
{
    struct emu_physical *physical;

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    int error = emu_physical_retain(pointer, &physical);
    if (!error)
        *handle = (uintptr_t)physical;
    return error;
}

DRIVER_CALL(cuMemExportToShareableHandle,
            (void *shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
             unsigned long long flags),
            (shared, handle, type, flags))
{
    if (!shared || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
               ? emu_physical_export(physical_of(handle), shared)
               : CUDA_ERROR_NOT_SUPPORTED;
}

DRIVER_CALL(cuMemImportFromShareableHandle,
            (CUmemGenericAllocationHandle * handle, void *shared, CUmemAllocationHandleType type),
            (handle, shared, type))
{
    struct emu_physical *physical;

    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    int error = emu_physical_import((int)(intptr_t)shared, &physical);
    if (!error)
        *handle = (uintptr_t)physical;
    return error;
}

DRIVER_CALL(cuMemGetAllocationPropertiesFromHandle,
            (CUmemAllocationProp * properties, CUmemGenericAllocationHandle handle),
            (properties, handle))
{
    int device = emu_physical_device(physical_of(handle));

    if (!properties || device < 0)
        return CUDA_ERROR_INVALID_VALUE;
    *properties = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    return 0;
}

CONTEXT_CALL(cuMemMap,
             (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
              unsigned long long flags),
             (pointer, bytes, offset, handle, flags))
{
    return flags ? CUDA_ERROR_INVALID_VALUE
                 : emu_mapping_map(pointer, bytes, offset, physical_of(handle));
}

CONTEXT_CALL(cuMemUnmap, (CUdeviceptr pointer, size_t bytes), (pointer, bytes))
{
    return emu_mapping_unmap(pointer, bytes);
}

CONTEXT_CALL(cuMemSetAccess,
             (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count),
             (pointer, bytes, access, count))
{
    if (!access || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        int error = CUDA_ERROR_INVALID_VALUE, device = access[i].location.id;

        if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
            error = emu_device_get(device)
                        ? emu_memory_allow(pointer, bytes, device, access[i].flags != 0)
                        : CUDA_ERROR_INVALID_DEVICE;
        if (error)
            return error;
    }
    return 0;
}

DRIVER_CALL(cuMemGetAccess,
            (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr pointer),
            (flags, location, pointer))
{
    struct emu_range range;

    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
        !emu_device_get(location->id) || !emu_memory_look_up((void *)pointer, &range, NULL) ||
        !range.physical)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = range.access >> (location->id & 63) & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return 0;
}
