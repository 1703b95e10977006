/* buffers.c: finds the allocation that a pointer lies in, and emits each one once (notice_buffer).
 */
#include "interpose/memory/buffers.h"

#include <string.h>

#include "interpose/real/gpu.h"
#include "interpose/ring/emit.h"
#include "interpose/shim/forget.h"
#include "interpose/shim/known.h"

static struct {
    struct emitted_ids emitted; /* hashes of the allocations, by their base */
    _Atomic uint64_t epoch;     /* goes up with every free: cached pointers are stale */
} buffers;

void buffers_forked(void)
{
    forget_state(&buffers, sizeof buffers);
}

static bool emit_buffer(struct shim_thread *thread, uint64_t pointer,
                        const struct gpu_memory *memory)
{
    struct record record = {.buffer = {.base = memory->base,
                                       .bytes = memory->bytes,
                                       .pointer = pointer,
                                       .device = memory->device,
                                       .type = memory->type}};
    return emit_notice(thread, &record, API_notice_buffer);
}

static bool is_known_to_cuda(uint32_t type)
{
    return type == MEMORY_HOST_PINNED || type == MEMORY_DEVICE || type == MEMORY_DEVICE_MAPPED ||
           type == MEMORY_MANAGED;
}

/* All of what cudaMalloc, cudaMallocHost and cudaMallocManaged give is one allocation. A reserved
 * range of addresses (cuMemMap, pools) may have holes: its pointers are looked up one by one. */
static bool is_one_allocation(uint32_t type)
{
    return type == MEMORY_DEVICE || type == MEMORY_HOST_PINNED || type == MEMORY_MANAGED;
}

/* What a query for another pointer into the same allocation gave; NULL: none that is fresh. */
static const struct buffer_entry *find_range(const struct thread_caches *caches, uint64_t pointer,
                                             uint64_t epoch)
{
    for (uint32_t i = 0; i < RANGE_CACHE; i++) {
        const struct buffer_entry *range = &caches->range[i];
        if (range->epoch == epoch && pointer - range->base < range->bytes)
            return range;
    }
    return NULL;
}

/* The thread's entry for the pointer; CUDA is queried if nothing fresh is known of its allocation.
 */
static struct buffer_entry *find_buffer_entry(struct shim_thread *thread, uint64_t pointer)
{
    /* Epochs count from 1 here, so that an empty entry is never valid. */
    uint64_t epoch = atomic_load_explicit(&buffers.epoch, memory_order_acquire) + 1;
    uint64_t hash = (pointer ^ pointer >> 21) * 0x9e3779b97f4a7c15u >> 40;
    struct buffer_entry *entry = &thread->caches->buffer[hash % BUFFER_CACHE];
    if (entry->pointer == pointer && entry->epoch == epoch)
        return entry;
    const struct buffer_entry *range = find_range(thread->caches, pointer, epoch);
    if (range) {
        *entry = *range;
        entry->pointer = pointer;
        return entry;
    }
    struct gpu_memory memory;
    gpu_memory_find(pointer, &memory);
    entry->pointer = pointer;
    entry->epoch = epoch;
    entry->base = memory.base;
    entry->bytes = memory.bytes;
    entry->device = memory.device;
    entry->type = (uint16_t)memory.type;
    entry->recorded = false;
    if (entry->bytes && is_one_allocation(entry->type))
        thread->caches->range[thread->caches->ranges++ % RANGE_CACHE] = *entry;
    return entry;
}

static _Atomic uint64_t *slot_of(uint64_t base)
{
    return &buffers.emitted.id[(base ^ base >> 21) * 0x9e3779b97f4a7c15u >> 40 & (KNOWN_IDS - 1)];
}

/* An allocation is emitted once for all pointers into it and all threads. A notice that was lost is
 * tried again. */
static void emit_buffer_once(struct shim_thread *thread, struct buffer_entry *entry)
{
    if (entry->recorded)
        return;
    struct gpu_memory memory = {entry->base, entry->bytes, entry->device, entry->type};
    uint64_t facts[] = {entry->base, entry->bytes,
                        (uint32_t)entry->device | (uint64_t)entry->type << 32};
    uint64_t id = string_id((const char *)facts, sizeof facts);
    if (entry->bytes && atomic_load_explicit(slot_of(entry->base), memory_order_relaxed) == id) {
        entry->recorded = true;
        return;
    }
    entry->recorded = emit_buffer(thread, entry->pointer, &memory);
    if (entry->recorded)
        atomic_store_explicit(slot_of(entry->base), id, memory_order_relaxed);
}

void buffers_record(struct shim_thread *thread, const void *pointer)
{
    if (pointer)
        emit_buffer_once(thread, find_buffer_entry(thread, (uintptr_t)pointer));
}

bool buffers_record_if_known(struct shim_thread *thread, uint64_t pointer)
{
    struct buffer_entry *entry = find_buffer_entry(thread, pointer);
    if (is_known_to_cuda(entry->type))
        emit_buffer_once(thread, entry);
    return is_known_to_cuda(entry->type);
}

bool buffers_find(struct shim_thread *thread, uint64_t pointer, struct buffer_fact *fact)
{
    struct buffer_entry *entry = find_buffer_entry(thread, pointer);
    *fact = (struct buffer_fact){entry->base, entry->device, entry->type};
    return is_known_to_cuda(entry->type);
}

void buffers_forget(uint64_t base)
{
    for (uint32_t i = 0; !base && i < KNOWN_IDS; i++)
        atomic_store_explicit(&buffers.emitted.id[i], 0, memory_order_relaxed);
    if (base)
        atomic_store_explicit(slot_of(base), 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&buffers.epoch, 1, memory_order_release);
}
