/* buffers.c: notice_buffer. See buffers.h. */
#include "interpose/buffers.h"

#include "interpose/emit.h"
#include "interpose/gpu.h"

enum { TYPE_NOT_TOLD = 0x100 };     /* added to the type of what was found but not told */

static bool tell(struct thread *thread, uint64_t pointer, const struct gpu_memory *memory)
{
    struct record record = { .buffer = { .base = memory->base, .bytes = memory->bytes, .pointer = pointer,
                                         .device = memory->device, .type = memory->type } };
    return emit_notice(thread, &record, API_notice_buffer);
}

static bool known_to_cuda(uint32_t type)
{
    return type == MEMORY_HOST_PINNED || type == MEMORY_DEVICE || type == MEMORY_DEVICE_MAPPED || type == MEMORY_MANAGED;
}

/* Returns the type of memory; tells of it unless it is `only_known` and CUDA does not know it. */
static uint32_t look_up(struct thread *thread, uint64_t pointer, bool only_known)
{
    /* Epochs count from 1 here, so that an empty entry is never valid. */
    uint64_t epoch = atomic_load_explicit(&shim.buffer_epoch, memory_order_acquire) + 1;
    uint64_t hash = (pointer ^ pointer >> 21) * 0x9e3779b97f4a7c15u >> 40;
    __typeof__(&thread->caches->buffer[0]) entry = &thread->caches->buffer[hash % BUFFER_CACHE];
    bool hit = entry->pointer == pointer && entry->epoch == epoch;
    if (hit && (!(entry->type & TYPE_NOT_TOLD) || only_known))
        return entry->type & ~(uint32_t)TYPE_NOT_TOLD;
    struct gpu_memory memory;
    gpu_memory_find(pointer, &memory);
    bool wanted = !only_known || known_to_cuda(memory.type);
    bool told = wanted && tell(thread, pointer, &memory);
    if (told || !wanted) {
        entry->pointer = pointer;
        entry->epoch = epoch;
        entry->type = memory.type | (told ? 0 : TYPE_NOT_TOLD);
    }
    return memory.type;
}

void buffers_tell(struct thread *thread, const void *pointer)
{
    if (pointer)
        look_up(thread, (uintptr_t)pointer, false);
}

bool buffers_tell_if_known(struct thread *thread, uint64_t pointer)
{
    return known_to_cuda(look_up(thread, pointer, true));
}

void buffers_forget(void)
{
    atomic_fetch_add_explicit(&shim.buffer_epoch, 1, memory_order_release);
}
