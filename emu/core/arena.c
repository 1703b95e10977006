/* arena.c: gives out and takes back addresses of one device's memory. */
#include "emu/core/arena.h"

#include <sys/mman.h>

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
