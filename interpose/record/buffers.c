/* buffers.c: notice_buffer. See buffers.h. */
#include "interpose/record/buffers.h"

#include "interpose/record/emit.h"
#include "interpose/progress/gpu.h"

static bool tell(struct thread *thread, uint64_t pointer, const struct gpu_memory *memory)
{
    struct record record = {.buffer = {.base = memory->base,
                                       .bytes = memory->bytes,
                                       .pointer = pointer,
                                       .device = memory->device,
                                       .type = memory->type}};
    return emit_notice(thread, &record, API_notice_buffer);
}

static bool known_to_cuda(uint32_t type)
{
    return type == MEMORY_HOST_PINNED || type == MEMORY_DEVICE || type == MEMORY_DEVICE_MAPPED ||
           type == MEMORY_MANAGED;
}

/* The thread's entry for the pointer, asked of CUDA if it is not fresh. */
static struct buffer_entry *look_up(struct thread *thread, uint64_t pointer)
{
    /* Epochs count from 1 here, so that an empty entry is never valid. */
    uint64_t epoch = atomic_load_explicit(&shim.buffer_epoch, memory_order_acquire) + 1;
    uint64_t hash = (pointer ^ pointer >> 21) * 0x9e3779b97f4a7c15u >> 40;
    struct buffer_entry *entry = &thread->caches->buffer[hash % BUFFER_CACHE];
    if (entry->pointer == pointer && entry->epoch == epoch)
        return entry;
    struct gpu_memory memory;
    gpu_memory_find(pointer, &memory);
    entry->pointer = pointer;
    entry->epoch = epoch;
    entry->base = memory.base;
    entry->bytes = memory.bytes;
    entry->device = memory.device;
    entry->type = (uint16_t)memory.type;
    entry->told = false;
    return entry;
}

static _Atomic uint64_t *place_of(uint64_t base)
{
    return &shim.known_buffers
                .id[(base ^ base >> 21) * 0x9e3779b97f4a7c15u >> 40 & (KNOWN_IDS - 1)];
}

/* An allocation is told once for all pointers into it and all threads. A notice that was lost is
 * tried again. */
static void tell_once(struct thread *thread, struct buffer_entry *entry)
{
    struct gpu_memory memory = {entry->base, entry->bytes, entry->device, entry->type};
    uint64_t facts[] = {entry->base, entry->bytes,
                        (uint32_t)entry->device | (uint64_t)entry->type << 32};
    uint64_t id = string_id((const char *)facts, sizeof facts);
    if (!entry->told && entry->bytes &&
        atomic_load_explicit(place_of(entry->base), memory_order_relaxed) == id)
        entry->told = true;
    if (entry->told)
        return;
    entry->told = tell(thread, entry->pointer, &memory);
    if (entry->told)
        atomic_store_explicit(place_of(entry->base), id, memory_order_relaxed);
}

void buffers_tell(struct thread *thread, const void *pointer)
{
    if (pointer)
        tell_once(thread, look_up(thread, (uintptr_t)pointer));
}

bool buffers_tell_if_known(struct thread *thread, uint64_t pointer)
{
    struct buffer_entry *entry = look_up(thread, pointer);
    if (known_to_cuda(entry->type))
        tell_once(thread, entry);
    return known_to_cuda(entry->type);
}

bool buffers_look(struct thread *thread, uint64_t pointer, struct buffer_fact *fact)
{
    struct buffer_entry *entry = look_up(thread, pointer);
    *fact = (struct buffer_fact){entry->base, entry->device, entry->type};
    return known_to_cuda(entry->type);
}

void buffers_forget(uint64_t base)
{
    for (uint32_t i = 0; !base && i < KNOWN_IDS; i++)
        atomic_store_explicit(&shim.known_buffers.id[i], 0, memory_order_relaxed);
    if (base)
        atomic_store_explicit(place_of(base), 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&shim.buffer_epoch, 1, memory_order_release);
}
