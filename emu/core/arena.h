/* arena.h: the address space of one device's memory.
 *
 * A large reservation without access rights; a live range is opened inside it and closed again when
 * freed. Addresses are given out upwards and come round again only when the reservation is used up,
 * so a pointer into freed memory is known for what it is. Not thread-safe: memory.c holds its lock.
 */
#ifndef DDPCHECK_EMU_ARENA_H
#define DDPCHECK_EMU_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
