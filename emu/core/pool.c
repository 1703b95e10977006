/* pool.c: the memory pools of each device, and memory that is freed once the device is idle. */
#include "emu/core/pool.h"

#include <driver_types.h>
#include <stdlib.h>

#include "emu/core.h"
#include "emu/core/capture.h"
#include "emu/core/device.h"
#include "emu/core/handles.h"
#include "emu/core/memory.h"
#include "emu/core/stream.h"

struct emu_pool *emu_pool_new(int device)
{
    struct emu_pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return NULL;
    pool->device = device;
    atomic_store(&pool->access, UINT64_C(1) << device);
    if (emu_handles_add(pool, HANDLE_POOL)) {
        free(pool);
        return NULL;
    }
    return pool;
}

int emu_pool_free(struct emu_pool *pool)
{
    return emu_handles_remove(pool, HANDLE_POOL) ? 0 : cudaErrorInvalidValue;
}

bool emu_pool_allows(const struct emu_pool *pool, int device)
{
    return atomic_load(&pool->access) >> device & 1;
}

void emu_pool_count(struct emu_pool *pool, long bytes)
{
    uint64_t used, high;

    if (!pool)
        return;
    used = atomic_fetch_add(&pool->used, (uint64_t)bytes) + (uint64_t)bytes;
    high = atomic_load(&pool->used_high);
    while (used > high && !atomic_compare_exchange_weak(&pool->used_high, &high, used))
        ;
}

/* The address is known at once; the memory is the stream's from its place in the queue on. */
int emu_pool_allocate(struct emu_pool *pool, struct emu_stream *stream, unsigned long bytes,
                      void **pointer)
{
    *pointer = NULL;
    if (emu_stream_is_capturing(stream)) {
        emu_unsupported("cudaMallocAsync during stream capture",
                        "graphs of the emulated machine own no memory");
        return cudaErrorStreamCaptureUnsupported;
    }
    return bytes ? emu_memory_allocate(pool->device, bytes, pool, pointer) : 0;
}

static int free_in_order(void *pointer)
{
    return emu_memory_free(pointer, 1u << EMU_MEMORY_DEVICE) ? cudaErrorIllegalAddress : 0;
}

int emu_pool_release(struct emu_stream *stream, void *pointer)
{
    struct emu_range range;

    if (!pointer)
        return 0;
    if (!emu_memory_look_up(pointer, &range, NULL) || range.kind != EMU_MEMORY_DEVICE ||
        range.base != (uintptr_t)pointer)
        return cudaErrorInvalidValue;
    if (emu_stream_is_capturing(stream)) {
        emu_unsupported("cudaFreeAsync during stream capture",
                        "graphs of the emulated machine own no memory");
        return cudaErrorStreamCaptureUnsupported;
    }
    return emu_stream_push(stream, "cudaFreeAsync", free_in_order, pointer, NULL);
}

int emu_memory_free_when_idle(void *pointer, unsigned kinds)
{
    struct emu_range range;
    int error = emu_capture_forbids_call();

    if (!pointer || error)
        return error;
    if (!emu_memory_look_up(pointer, &range, NULL) || range.base != (uintptr_t)pointer ||
        !(kinds & 1u << range.kind))
        return cudaErrorInvalidValue;
    error = emu_stream_synchronize_device(emu_device_get(range.device));
    return error ? error : emu_memory_free(pointer, kinds);
}
