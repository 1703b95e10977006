/* memory_access.c: looks addresses up in the table of ranges, protects memory while work uses it,
 * reserves address space, and finds out which memory can't be pinned. */
#include "emu/core/memory_table.h"

#include <driver_types.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/mapping.h"
#include "emu/core/memory.h"
#include "emu/core/pool.h"

/* The device whose address space holds `address`, or -1. */
static int arena_of(uintptr_t address)
{
    for (int i = 0; i < EMU_MAX_DEVICES && emu_memory_table.arenas[i].bytes; i++)
        if (emu_arena_holds(&emu_memory_table.arenas[i], address))
            return i;
    return -1;
}

bool emu_memory_look_up(const void *pointer, struct emu_range *copy, int *freed_device)
{
    const struct emu_range *range;
    int device = -1;

    pthread_rwlock_rdlock(&emu_memory_table.lock);
    range = emu_memory_around((uintptr_t)pointer);
    if (range)
        memcpy(copy, range, offsetof(struct emu_range, holders));
    else
        device = arena_of((uintptr_t)pointer);
    pthread_rwlock_unlock(&emu_memory_table.lock);
    if (freed_device)
        *freed_device = device;
    return range != NULL;
}

static bool may_touch(int device, const struct emu_range *range)
{
    const struct emu_device *own;

    if (range->physical)
        return device < 0 || device > 63 || (range->access >> device & 1);
    if (device < 0 || range->kind != EMU_MEMORY_DEVICE || range->device == device)
        return true;
    if (range->pool)
        return emu_pool_allows(range->pool, device);
    own = emu_device_get(device);
    return own && (atomic_load(&own->peers) >> range->device & 1);
}

/* With the lock held: the bytes up to the end of the range, and of those behind it without a gap,
 * where memory is mapped and the device may touch it. */
static size_t bytes_mapped_from(int device, uintptr_t address)
{
    size_t position = emu_memory_position(address) - 1;
    uintptr_t end = emu_memory_table.ranges[position]->base +
                    emu_memory_table.ranges[position]->bytes;

    while (++position < emu_memory_table.count && emu_memory_table.ranges[position]->base == end &&
           emu_memory_table.ranges[position]->physical &&
           may_touch(device, emu_memory_table.ranges[position]))
        end += emu_memory_table.ranges[position]->bytes;
    return end - address;
}

/* With the lock held. *found is NULL for pageable host memory. */
static int check_range(int device, uintptr_t address, size_t bytes, bool pageable,
                       struct emu_range **found)
{
    struct emu_range *range = emu_memory_around(address);

    *found = range;
    if (range) {
        size_t reach = range->bytes - (address - range->base);

        if (range->physical && bytes > reach)
            reach = bytes_mapped_from(device, address);
        return bytes <= reach && may_touch(device, range) ? 0 : cudaErrorIllegalAddress;
    }
    return pageable && address && arena_of(address) < 0 && !emu_mapping_reserves(address)
               ? 0
               : cudaErrorIllegalAddress;
}

/* With the lock held: the mappings from the first one up to there, which follow each other without
 * a gap, as one to release; NULL: no memory. */
static struct emu_range *hold_mappings(const struct emu_range *first, uintptr_t end)
{
    size_t position = emu_memory_position(first->base) - 1, count = 0;
    struct emu_range *all = malloc(sizeof(*all));

    while (position + count < emu_memory_table.count &&
           emu_memory_table.ranges[position + count]->base < end)
        count++;
    struct emu_range **piece = all ? malloc(count * sizeof(*piece)) : NULL;
    if (!piece) {
        free(all);
        return NULL;
    }
    memcpy(all, first, offsetof(struct emu_range, piece));
    memcpy(piece, &emu_memory_table.ranges[position], count * sizeof(*piece));
    for (size_t i = 0; i < count; i++)
        atomic_fetch_add(&piece[i]->holders, 1);
    all->piece = piece;
    all->pieces = count;
    atomic_init(&all->holders, 1);
    return all;
}

int emu_memory_hold(int device, const void *pointer, size_t bytes, bool pageable,
                    struct emu_range **held)
{
    int error;

    pthread_rwlock_rdlock(&emu_memory_table.lock);
    error = check_range(device, (uintptr_t)pointer, bytes, pageable, held);
    if (error) {
        *held = NULL;
    } else if (*held && (*held)->physical &&
               bytes > (*held)->bytes - ((uintptr_t)pointer - (*held)->base)) {
        *held = hold_mappings(*held, (uintptr_t)pointer + bytes);
        error = *held ? 0 : cudaErrorMemoryAllocation;
    } else if (*held) {
        atomic_fetch_add(&(*held)->holders, 1);
    }
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return error;
}

void emu_memory_release(struct emu_range *range)
{
    if (!range || atomic_fetch_sub(&range->holders, 1) > 1)
        return;
    if (range->piece) {
        for (size_t i = 0; i < range->pieces; i++)
            emu_memory_release(range->piece[i]);
        free(range->piece);
        free(range);
        return;
    }
    switch (range->kind) {
    case EMU_MEMORY_DEVICE:
        if (range->shared)
            close(range->shared - 1);
        if (range->physical) {
            emu_mapping_close(range);
            break;
        }
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

size_t emu_memory_bytes_from(const void *pointer)
{
    const struct emu_range *range;
    size_t bytes = 0;

    pthread_rwlock_rdlock(&emu_memory_table.lock);
    range = emu_memory_around((uintptr_t)pointer);
    if (range && range->physical)
        bytes = bytes_mapped_from(-1, (uintptr_t)pointer);
    else if (range)
        bytes = range->bytes - ((uintptr_t)pointer - range->base);
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return bytes;
}

bool emu_memory_find(const void *pointer, struct emu_memory *found)
{
    struct emu_range range;

    if (!emu_memory_look_up(pointer, &range, NULL))
        return false;
    *found = (struct emu_memory){
        .base = range.base,
        .bytes = (uintptr_t)pointer - range.base + emu_memory_bytes_from(pointer),
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

    pthread_rwlock_rdlock(&emu_memory_table.lock);
    error = check_range(device, (uintptr_t)pointer, bytes, false, &range);
    pthread_rwlock_unlock(&emu_memory_table.lock);
    return !error;
}

static bool is_shared_memory(const char *path, dev_t device)
{
    struct statfs system;
    struct stat shm;

    if (!strncmp(path, "/memfd:", 7) || !strncmp(path, "/SYSV", 5) ||
        !strncmp(path, "/dev/zero", 9))
        return true;
    if (!stat("/dev/shm", &shm) && shm.st_dev == device)
        return true;
    return !statfs(path, &system) &&
           (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

bool emu_file_backs(const void *pointer, size_t bytes)
{
    uintptr_t begin = (uintptr_t)pointer, end = begin + bytes;
    FILE *maps = fopen("/proc/self/maps", "re");
    bool refused = false;
    char line[4352];

    while (maps && !refused && fgets(line, sizeof(line), maps)) {
        unsigned long from, to, inode;
        unsigned major, minor;
        char access[5], path[4096] = "";

        if (sscanf(line, "%lx-%lx %4s %*x %x:%x %lu %4095[^\n]", &from, &to, access, &major, &minor,
                   &inode, path) >= 6)
            refused = from < end && to > begin && access[3] == 's' && inode &&
                      !is_shared_memory(path, makedev(major, minor));
    }
    if (maps)
        fclose(maps);
    return refused;
}

/* --- arenas --- */

enum { GENEROSITY = 16 }; /* how often the device's memory fits into its address space */

bool emu_arena_reserve(struct emu_arena *arena, size_t least)
{
    for (size_t times = GENEROSITY; times; times /= 2) {
        void *base = mmap(NULL, least * times, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (base != MAP_FAILED) {
            *arena = (struct emu_arena){(uintptr_t)base, least * times, (uintptr_t)base};
            return true;
        }
    }
    return false;
}

bool emu_arena_holds(const struct emu_arena *arena, uintptr_t address)
{
    return address - arena->base < arena->bytes;
}

bool emu_arena_open(uintptr_t base, size_t bytes)
{
    return !mprotect((void *)base, bytes, PROT_READ | PROT_WRITE);
}

void emu_arena_close(uintptr_t base, size_t bytes)
{
    /* A fresh mapping over the old one: one call gives back pages and rights, and can't be seen
     * half done. */
    mmap((void *)base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
}
