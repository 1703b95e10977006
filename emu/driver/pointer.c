/* pointer.c: the driver's pointer attributes. */
#include <stdint.h>
#include <string.h>

#include "emu/core/memory.h"
#include "emu/driver/call.h"
#include "emu/driver/context.h"

/* Writes a value of the size that the attribute has. */
#define PUT(type, value) (*(type *)data = (type)(value))

static int put_place(void *data, CUpointer_attribute attribute, const struct emu_range *range,
                     CUdeviceptr pointer)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        PUT(CUcontext, context_primary(emu_device_get(range->device)));
        return 0;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        /* Managed memory counts as device memory here; IS_MANAGED distinguishes it
         * (cuPointerGetAttribute). */
        PUT(unsigned, range->kind == EMU_MEMORY_DEVICE || range->kind == EMU_MEMORY_MANAGED
                          ? CU_MEMORYTYPE_DEVICE
                          : CU_MEMORYTYPE_HOST);
        return 0;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        PUT(CUdeviceptr, pointer);
        return 0;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (range->kind == EMU_MEMORY_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        PUT(void *, pointer);
        return 0;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        PUT(int, range->device);
        return 0;
    default:
        return -1;
    }
}

static int put_range(void *data, CUpointer_attribute attribute, const struct emu_range *range)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        PUT(CUdeviceptr, range->base);
        return 0;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        PUT(size_t, range->bytes);
        return 0;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        PUT(unsigned long long, range->id);
        return 0;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        PUT(unsigned, range->kind == EMU_MEMORY_MANAGED);
        return 0;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        PUT(unsigned, 1);
        return 0;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        PUT(unsigned, range->kind == EMU_MEMORY_DEVICE && !range->pool && !range->physical);
        return 0;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        PUT(unsigned, 0);
        return 0;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        PUT(unsigned long long, 0);
        return 0;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        PUT(unsigned, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
        return 0;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        PUT(CUmemoryPool, range->pool);
        return 0;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static int put_attribute(void *data, CUpointer_attribute attribute, const struct emu_range *range,
                         CUdeviceptr pointer)
{
    int error = put_place(data, attribute, range, pointer);

    return error < 0 ? put_range(data, attribute, range) : error;
}

DRIVER_CALL(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr pointer),
            (data, attribute, pointer))
{
    struct emu_range range;

    if (!data || !emu_memory_look_up((void *)pointer, &range, NULL))
        return CUDA_ERROR_INVALID_VALUE;
    return put_attribute(data, attribute, &range, pointer);
}

/* What a pointer that CUDA does not know yields for each attribute: nulls, and no device. */
static void put_unknown(void *data, CUpointer_attribute attribute)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        PUT(int, -2);
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        PUT(unsigned, 0);
        break;
    default:
        PUT(uint64_t, 0);
        break;
    }
}

DRIVER_CALL(cuPointerGetAttributes,
            (unsigned int count, CUpointer_attribute *attributes, void **data, CUdeviceptr pointer),
            (count, attributes, data, pointer))
{
    struct emu_range range;
    bool known = emu_memory_look_up((void *)pointer, &range, NULL);

    if (!count || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!known || put_attribute(data[i], attributes[i], &range, pointer))
            put_unknown(data[i], attributes[i]);
    return 0;
}
