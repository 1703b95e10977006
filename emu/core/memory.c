/* memory.c: the table of address ranges: allocation, mappings, and what ends them. */
#include "emu/core/memory_table.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/mapping.h"
#include "emu/core/pool.h"

enum { PAGE = 4096 };

struct emu_memory_table emu_memory_table = {.lock = PTHREAD_RWLOCK_INITIALIZER, .next_id = 1};

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

size_t emu_memory_position(uintptr_t address)
{
    size_t low = 0, high = emu_memory_table.count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (emu_memory_table.ranges[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct emu_range *emu_memory_around(uintptr_t address)
{
    size_t position = emu_memory_position(address);
    struct emu_range *range = position ? emu_memory_table.ranges[position - 1] : NULL;

    return range && address - range->base < range->bytes ? range : NULL;
}

/* Puts a copy of `model` into the table. Returns it, or NULL if there is no memory. */
static struct emu_range *insert_range(const struct emu_range *model)
{
    size_t position = emu_memory_position(model->base);
    struct emu_range *range;

    if (emu_memory_table.count == emu_memory_table.room) {
        size_t room = emu_memory_table.room ? emu_memory_table.room * 2 : 256;
        struct emu_range **grown =
            realloc(emu_memory_table.ranges, room * sizeof(struct emu_range *));

        if (!grown)
            return NULL;
        emu_memory_table.ranges = grown;
        emu_memory_table.room = room;
    }
    range = malloc(sizeof(*range));
    if (!range)
        return NULL;
    *range = *model;
    range->id = emu_memory_table.next_id++;
    atomic_init(&range->holders, 1);
    memmove(&emu_memory_table.ranges[position + 1], &emu_memory_table.ranges[position],
            (emu_memory_table.count - position) * sizeof(struct emu_range *));
    emu_memory_table.ranges[position] = range;
    emu_memory_table.count++;
    return range;
}

/* Whether [base, base+bytes) is free of ranges, with a page of guard behind each. */
static bool gap_at(uintptr_t base, size_t bytes, uintptr_t *past)
{
    size_t position = emu_memory_position(base + bytes);
    const struct emu_range *below = position ? emu_memory_table.ranges[position - 1] : NULL;

    if (!below || below->base + below->mapped + PAGE <= base)
        return true;
    *past = below->base + below->mapped + PAGE;
    return false;
}

/* Finds room in the arena: from where the last one was given, then once more from the start. */
static uintptr_t find_room(struct emu_arena *arena, size_t bytes)
{
    uintptr_t end = arena->base + arena->bytes;

    for (int round = 0; round < 2; round++) {
        uintptr_t at = round ? arena->base : arena->next, past = at;

        while (bytes + PAGE <= end - at) {
            if (gap_at(at, bytes, &past)) {
                arena->next = at + bytes + PAGE;
                return at;
            }
            at = past;
            if (at > end)
                break;
        }
    }
    return 0;
}

/* Takes `bytes` from the device's budget. */
static bool charge(struct emu_device *device, size_t bytes)
{
    size_t used = atomic_load(&device->memory_used);

    do {
        if (bytes > device->memory_limit - used)
            return false;
    } while (!atomic_compare_exchange_weak(&device->memory_used, &used, used + bytes));
    return true;
}

bool emu_memory_charge(int device, size_t bytes)
{
    struct emu_device *own = emu_device_get(device);

    return bytes <= own->memory_limit && charge(own, bytes);
}

void emu_memory_refund(int device, size_t bytes)
{
    atomic_fetch_sub(&emu_device_get(device)->memory_used, bytes);
}

/* With the lock held: an opened range of the device's arena, or NULL. */
static struct emu_range *open_range(struct emu_device *device, size_t bytes, struct emu_pool *pool)
{
    struct emu_arena *arena = &emu_memory_table.arenas[device->index];
    struct emu_range model = {.bytes = bytes,
                              .mapped = whole_pages(bytes),
                              .device = device->index,
                              .kind = EMU_MEMORY_DEVICE,
                              .pool = pool};
    struct emu_range *range;

    if (!arena->bytes && !emu_arena_reserve(arena, whole_pages(device->memory_limit) * 2))
        return NULL;
    model.base = find_room(arena, model.mapped);
    if (!model.base || !emu_arena_open(model.base, model.mapped))
        return NULL;
    range = insert_range(&model);
    if (!range)
        emu_arena_close(model.base, model.mapped);
    return range;
}

int emu_memory_allocate(int index, size_t bytes, struct emu_pool *pool, void **pointer)
{
    struct emu_device *device = emu_device_get(index);
    struct emu_range *range;

    if (bytes > device->memory_limit || !charge(device, whole_pages(bytes)))
        return cudaErrorMemoryAllocation;
    pthread_rwlock_wrlock(&emu_memory_table.lock);
    range = open_range(device, bytes, pool);
    pthread_rwlock_unlock(&emu_memory_table.lock);
    if (!range) {
        emu_memory_refund(index, whole_pages(bytes));
        return cudaErrorMemoryAllocation;
    }
    emu_pool_count(pool, (long)range->mapped);
    *pointer = (void *)range->base;
    return 0;
}

int emu_memory_allocate_host(int device, size_t bytes, enum emu_memory_kind kind, unsigned flags,
                             void **pointer)
{
    struct emu_range model = {.bytes = bytes,
                              .mapped = whole_pages(bytes),
                              .device = device,
                              .kind = kind,
                              .flags = flags};
    void *base =
        mmap(NULL, model.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool known;

    if (base == MAP_FAILED)
        return cudaErrorMemoryAllocation;
    model.base = (uintptr_t)base;
    pthread_rwlock_wrlock(&emu_memory_table.lock);
    known = insert_range(&model) != NULL;
    pthread_rwlock_unlock(&emu_memory_table.lock);
    if (!known) {
        munmap(base, model.mapped);
        return cudaErrorMemoryAllocation;
    }
    *pointer = base;
    return 0;
}

int emu_memory_register(int device, void *pointer, size_t bytes, unsigned flags)
{
    uintptr_t first = (uintptr_t)pointer & ~(uintptr_t)(PAGE - 1);
    struct emu_range model = {.base = (uintptr_t)pointer,
                              .bytes = bytes,
                              .mapped = bytes,
                              .device = device,
                              .kind = EMU_MEMORY_REGISTERED,
                              .flags = flags};
    const struct emu_range *below;
    int error = emu_file_backs(pointer, bytes) ? cudaErrorInvalidValue : 0;

    pthread_rwlock_wrlock(&emu_memory_table.lock);
    size_t position = emu_memory_position(((uintptr_t)pointer + bytes - 1) | (PAGE - 1));
    below = position ? emu_memory_table.ranges[position - 1] : NULL;
    if (!error && below && below->base + below->bytes > first)
        error = cudaErrorHostMemoryAlreadyRegistered; /* pages are pinned once */
    if (!error && !insert_range(&model))
        error = cudaErrorMemoryAllocation;
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return error;
}

/* With the lock held: takes the range out of the table; the caller then owns the table's hold. */
static struct emu_range *take_out(size_t position)
{
    struct emu_range *range = emu_memory_table.ranges[position];

    emu_memory_table.count--;
    memmove(&emu_memory_table.ranges[position], &emu_memory_table.ranges[position + 1],
            (emu_memory_table.count - position) * sizeof(struct emu_range *));
    return range;
}

static void refund(const struct emu_range *range)
{
    if (range->kind != EMU_MEMORY_DEVICE || range->imported || range->physical)
        return;
    emu_memory_refund(range->device, range->mapped);
    emu_pool_count(range->pool, -(long)range->mapped);
}

static int give_back(void *pointer, unsigned kinds, bool imported)
{
    struct emu_range *range = NULL;
    size_t position;

    pthread_rwlock_wrlock(&emu_memory_table.lock);
    position = emu_memory_position((uintptr_t)pointer);
    if (position && emu_memory_table.ranges[position - 1]->base == (uintptr_t)pointer &&
        (kinds & 1u << emu_memory_table.ranges[position - 1]->kind) &&
        emu_memory_table.ranges[position - 1]->imported == imported) {
        range = take_out(position - 1);
        refund(range);
    }
    pthread_rwlock_unlock(&emu_memory_table.lock);
    if (!range)
        return cudaErrorInvalidValue;
    emu_memory_release(range);
    return 0;
}

int emu_memory_free(void *pointer, unsigned kinds)
{
    return give_back(pointer, kinds, false);
}

int emu_memory_import(const struct emu_range *model)
{
    bool known;

    pthread_rwlock_wrlock(&emu_memory_table.lock);
    known = insert_range(model) != NULL;
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return known ? 0 : cudaErrorMemoryAllocation;
}

int emu_memory_unimport(void *pointer)
{
    return give_back(pointer, 1u << EMU_MEMORY_DEVICE, true);
}

/* With the lock held: the number of ranges from the first on that fill these addresses; 0: they do
 * not, or one is cut. `first` is the position of the first. */
static size_t mappings_in(uintptr_t base, size_t bytes, size_t *first)
{
    uintptr_t at = base;
    size_t position = emu_memory_position(base);

    *first = position - 1;
    if (!position)
        return 0;
    for (position--; position < emu_memory_table.count && at < base + bytes; position++) {
        const struct emu_range *range = emu_memory_table.ranges[position];

        if (!range->physical || range->base != at)
            return 0;
        at += range->bytes;
    }
    return at == base + bytes ? position - *first : 0;
}

bool emu_memory_maps(uintptr_t base, size_t bytes)
{
    pthread_rwlock_rdlock(&emu_memory_table.lock);
    size_t position = emu_memory_position(base + bytes - 1);
    const struct emu_range *below = position ? emu_memory_table.ranges[position - 1] : NULL;
    bool found = below && below->base + below->bytes > base;
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return found;
}

int emu_memory_map(const struct emu_range *model)
{
    int error = 0;

    pthread_rwlock_wrlock(&emu_memory_table.lock);
    size_t position = emu_memory_position(model->base + model->bytes - 1);
    const struct emu_range *below = position ? emu_memory_table.ranges[position - 1] : NULL;
    if (below && below->base + below->bytes > model->base)
        error = cudaErrorInvalidValue;
    else if (!insert_range(model))
        error = cudaErrorMemoryAllocation;
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return error;
}

int emu_memory_unmap(uintptr_t base, size_t bytes)
{
    size_t first;

    pthread_rwlock_wrlock(&emu_memory_table.lock);
    size_t count = mappings_in(base, bytes, &first);
    for (size_t i = 0; i < count; i++)
        emu_memory_release(take_out(first));
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return count ? 0 : cudaErrorInvalidValue;
}

int emu_memory_allow(uintptr_t base, size_t bytes, int device, bool allowed)
{
    size_t first;

    pthread_rwlock_wrlock(&emu_memory_table.lock);
    size_t count = mappings_in(base, bytes, &first);
    for (size_t i = 0; i < count && device < 64; i++) {
        uint64_t *access = &emu_memory_table.ranges[first + i]->access, bit = UINT64_C(1) << device;

        *access = allowed ? *access | bit : *access & ~bit;
    }
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return count ? 0 : cudaErrorInvalidValue;
}

void emu_memory_drop_device(int device, bool unmap)
{
    pthread_rwlock_wrlock(&emu_memory_table.lock);
    for (size_t i = emu_memory_table.count; i-- > 0;) {
        struct emu_range *range = emu_memory_table.ranges[i];
        bool registered = range->kind == EMU_MEMORY_REGISTERED;

        if (range->device != device || (range->kind != EMU_MEMORY_DEVICE && !registered))
            continue;
        take_out(i);
        refund(range);
        if (unmap || registered) /* registered pages stay the program's */
            emu_memory_release(range);
        else
            free(range); /* the pages stay: a hung kernel may still be writing to them */
    }
    pthread_rwlock_unlock(&emu_memory_table.lock);
}
