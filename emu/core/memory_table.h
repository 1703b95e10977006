/* memory_table.h: the table of ranges itself and the arenas of addresses, for memory.c and
 * memory_access.c. */
#ifndef DDPCHECK_EMU_MEMORY_TABLE_H
#define DDPCHECK_EMU_MEMORY_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/device.h"
#include "emu/core/memory.h"

/* The address space of one device's memory.
 *
 * A large reservation without access rights; a live range is opened inside it and closed again when
 * freed. Addresses are given out upwards and come round again only when the reservation is used up,
 * so a pointer into freed memory is known for what it is. Not thread-safe: memory.c holds its lock.
 */

struct emu_arena {
    uintptr_t base;
    size_t bytes;
    uintptr_t next; /* where to look first */
};

/* Reserves at least `least` bytes, more if the address space allows. False: no address space. */
bool emu_arena_reserve(struct emu_arena *arena, size_t least);
bool emu_arena_holds(const struct emu_arena *arena, uintptr_t address);
/* Opens [base, base+bytes), whole pages. False: no memory. */
bool emu_arena_open(uintptr_t base, size_t bytes);
/* Takes the pages and the access rights away again. */
void emu_arena_close(uintptr_t base, size_t bytes);

extern struct emu_memory_table {
    pthread_rwlock_t lock;
    struct emu_range **ranges; /* sorted by base, disjoint */
    size_t count, room;
    uint64_t next_id;
    struct emu_arena arenas[EMU_MAX_DEVICES];
} emu_memory_table;

/* With the lock held: the number of ranges that begin at or below `address`. */
size_t emu_memory_position(uintptr_t address);
/* With the lock held: the range that holds `address`; NULL: none. */
struct emu_range *emu_memory_around(uintptr_t address);

#endif
