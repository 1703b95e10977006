/* memory_table.h: the table of ranges itself, for memory.c and memory_access.c. */
#ifndef DDPCHECK_EMU_MEMORY_TABLE_H
#define DDPCHECK_EMU_MEMORY_TABLE_H

#include <pthread.h>

#include "emu/core/arena.h"
#include "emu/core/device.h"
#include "emu/core/memory.h"

extern struct emu_memory_table {
    pthread_rwlock_t lock;
    struct emu_range **ranges; /* sorted by base, disjoint */
    size_t count, room;
    uint64_t next_id;
    struct emu_arena arenas[EMU_MAX_DEVICES];
} emu_memory_table;

/* With the lock held: the number of ranges that begin at or below `address`. */
size_t emu_memory_position(uintptr_t address);
/* Likewise the range that holds it; NULL: none. */
struct emu_range *emu_memory_around(uintptr_t address);

#endif
