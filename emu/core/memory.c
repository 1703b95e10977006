/* memory.c: the table of address ranges: allocation, lookup, and protection while work uses them.
 */
#include "emu/core/memory.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emu/core.h"
#include "emu/core/arena.h"
#include "emu/core/device.h"
#include "emu/core/pool.h"

enum { PAGE = 4096 };

static struct {
    pthread_rwlock_t lock;
    struct emu_range **ranges; /* sorted by base, disjoint */
    size_t count, room;
    uint64_t next_id;
    struct emu_arena arenas[EMU_MAX_DEVICES];
} memory = {.lock = PTHREAD_RWLOCK_INITIALIZER, .next_id = 1};

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* The number of ranges that begin at or below `address`. */
static size_t position_of(uintptr_t address)
{
    size_t low = 0, high = memory.count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (memory.ranges[middle]->base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct emu_range *range_around(uintptr_t address)
{
    size_t position = position_of(address);
    struct emu_range *range = position ? memory.ranges[position - 1] : NULL;

    return range && address - range->base < range->bytes ? range : NULL;
}

/* Puts a copy of `model` into the table. Returns it, or NULL if there is no memory. */
static struct emu_range *insert_range(const struct emu_range *model)
{
    size_t position = position_of(model->base);
    struct emu_range *range;

    if (memory.count == memory.room) {
        size_t room = memory.room ? memory.room * 2 : 256;
        struct emu_range **grown = realloc(memory.ranges, room * sizeof(struct emu_range *));

        if (!grown)
            return NULL;
        memory.ranges = grown;
        memory.room = room;
    }
    range = malloc(sizeof(*range));
    if (!range)
        return NULL;
    *range = *model;
    range->id = memory.next_id++;
    atomic_init(&range->holders, 1);
    memmove(&memory.ranges[position + 1], &memory.ranges[position],
            (memory.count - position) * sizeof(struct emu_range *));
    memory.ranges[position] = range;
    memory.count++;
    return range;
}

/* Whether [base, base+bytes) is free of ranges, with a page of guard behind each. */
static bool gap_at(uintptr_t base, size_t bytes, uintptr_t *past)
{
    size_t position = position_of(base + bytes);
    const struct emu_range *below = position ? memory.ranges[position - 1] : NULL;

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

/* With the lock held: an opened range of the device's arena, or NULL. */
static struct emu_range *open_range(struct emu_device *device, size_t bytes, struct emu_pool *pool)
{
    struct emu_arena *arena = &memory.arenas[device->index];
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
    pthread_rwlock_wrlock(&memory.lock);
    range = open_range(device, bytes, pool);
    pthread_rwlock_unlock(&memory.lock);
    if (!range) {
        atomic_fetch_sub(&device->memory_used, whole_pages(bytes));
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
    pthread_rwlock_wrlock(&memory.lock);
    known = insert_range(&model) != NULL;
    pthread_rwlock_unlock(&memory.lock);
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

    pthread_rwlock_wrlock(&memory.lock);
    size_t position = position_of(((uintptr_t)pointer + bytes - 1) | (PAGE - 1));
    below = position ? memory.ranges[position - 1] : NULL;
    if (!error && below && below->base + below->bytes > first)
        error = cudaErrorHostMemoryAlreadyRegistered; /* pages are pinned once */
    if (!error && !insert_range(&model))
        error = cudaErrorMemoryAllocation;
    pthread_rwlock_unlock(&memory.lock);
    return error;
}

void emu_memory_release(struct emu_range *range)
{
    if (!range || atomic_fetch_sub(&range->holders, 1) > 1)
        return;
    switch (range->kind) {
    case EMU_MEMORY_DEVICE:
        if (range->shared)
            close(range->shared - 1);
        if (!range->imported) {
            emu_arena_close(range->base, range->mapped);
            break;
        }
        /* fall through */
    case EMU_MEMORY_PINNED:
    case EMU_MEMORY_MANAGED:
        munmap((void *)range->base, range->mapped);
        break;
    case EMU_MEMORY_REGISTERED:
        break;
    }
    free(range);
}

/* With the lock held: takes the range out of the table; the caller then owns the table's hold. */
static struct emu_range *take_out(size_t position)
{
    struct emu_range *range = memory.ranges[position];

    memory.count--;
    memmove(&memory.ranges[position], &memory.ranges[position + 1],
            (memory.count - position) * sizeof(struct emu_range *));
    return range;
}

static void refund(const struct emu_range *range)
{
    if (range->kind != EMU_MEMORY_DEVICE || range->imported)
        return;
    atomic_fetch_sub(&emu_device_get(range->device)->memory_used, range->mapped);
    emu_pool_count(range->pool, -(long)range->mapped);
}

static int give_back(void *pointer, unsigned kinds, bool imported)
{
    struct emu_range *range = NULL;
    size_t position;

    pthread_rwlock_wrlock(&memory.lock);
    position = position_of((uintptr_t)pointer);
    if (position && memory.ranges[position - 1]->base == (uintptr_t)pointer &&
        (kinds & 1u << memory.ranges[position - 1]->kind) &&
        memory.ranges[position - 1]->imported == imported) {
        range = take_out(position - 1);
        refund(range);
    }
    pthread_rwlock_unlock(&memory.lock);
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

    pthread_rwlock_wrlock(&memory.lock);
    known = insert_range(model) != NULL;
    pthread_rwlock_unlock(&memory.lock);
    return known ? 0 : cudaErrorMemoryAllocation;
}

int emu_memory_unimport(void *pointer)
{
    return give_back(pointer, 1u << EMU_MEMORY_DEVICE, true);
}

void emu_memory_drop_device(int device, bool unmap)
{
    pthread_rwlock_wrlock(&memory.lock);
    for (size_t i = memory.count; i-- > 0;) {
        struct emu_range *range = memory.ranges[i];
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
    pthread_rwlock_unlock(&memory.lock);
}

/* The device whose address space holds `address`, or -1. */
static int arena_of(uintptr_t address)
{
    for (int i = 0; i < EMU_MAX_DEVICES && memory.arenas[i].bytes; i++)
        if (emu_arena_holds(&memory.arenas[i], address))
            return i;
    return -1;
}

bool emu_memory_look_up(const void *pointer, struct emu_range *copy, int *freed_device)
{
    const struct emu_range *range;
    int device = -1;

    pthread_rwlock_rdlock(&memory.lock);
    range = range_around((uintptr_t)pointer);
    if (range)
        memcpy(copy, range, offsetof(struct emu_range, holders));
    else
        device = arena_of((uintptr_t)pointer);
    pthread_rwlock_unlock(&memory.lock);
    if (freed_device)
        *freed_device = device;
    return range != NULL;
}

static bool may_touch(int device, const struct emu_range *range)
{
    const struct emu_device *own;

    if (device < 0 || range->kind != EMU_MEMORY_DEVICE || range->device == device)
        return true;
    if (range->pool)
        return emu_pool_allows(range->pool, device);
    own = emu_device_get(device);
    return own && (atomic_load(&own->peers) >> range->device & 1);
}

/* With the lock held. *found is NULL for pageable host memory. */
static int check_range(int device, uintptr_t address, size_t bytes, bool pageable,
                       struct emu_range **found)
{
    struct emu_range *range = range_around(address);

    *found = range;
    if (range)
        return bytes <= range->bytes - (address - range->base) && may_touch(device, range)
                   ? 0
                   : cudaErrorIllegalAddress;
    return pageable && address && arena_of(address) < 0 ? 0 : cudaErrorIllegalAddress;
}

int emu_memory_hold(int device, const void *pointer, size_t bytes, bool pageable,
                    struct emu_range **held)
{
    int error;

    pthread_rwlock_rdlock(&memory.lock);
    error = check_range(device, (uintptr_t)pointer, bytes, pageable, held);
    if (error)
        *held = NULL;
    if (*held)
        atomic_fetch_add(&(*held)->holders, 1);
    pthread_rwlock_unlock(&memory.lock);
    return error;
}

bool emu_memory_find(const void *pointer, struct emu_memory *found)
{
    struct emu_range range;

    if (!emu_memory_look_up(pointer, &range, NULL))
        return false;
    *found = (struct emu_memory){
        .base = range.base,
        .bytes = range.bytes,
        .device = range.kind == EMU_MEMORY_DEVICE || range.kind == EMU_MEMORY_MANAGED ? range.device
                                                                                      : -1,
        .managed = range.kind == EMU_MEMORY_MANAGED,
    };
    return true;
}

bool emu_memory_reachable(int device, const void *pointer, size_t bytes)
{
    struct emu_range *range;
    int error;

    pthread_rwlock_rdlock(&memory.lock);
    error = check_range(device, (uintptr_t)pointer, bytes, false, &range);
    pthread_rwlock_unlock(&memory.lock);
    return !error;
}
