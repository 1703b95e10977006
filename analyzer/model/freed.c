/* freed.c: remembers freed memory until it is allocated again. */
#include "analyzer/model/freed.h"

#include <string.h>

#include "analyzer/model/array.h"
#include "lib/base/invariant.h"

enum { FREED_MAX = 4096 };

/* Index of the first whose end is above the address. */
static uint32_t freed_at_or_after(const struct process *process, uint64_t address)
{
    uint32_t low = 0, high = process->memory.freed_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (process->memory.freed[middle].base + process->memory.freed[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_at(struct process *process, uint32_t from, uint32_t to)
{
    invariant(from <= to && to <= process->memory.freed_count,
              "only freed memory that is known is forgotten");
    memmove(&process->memory.freed[from], &process->memory.freed[to],
            (process->memory.freed_count - to) * sizeof *process->memory.freed);
    process->memory.freed_count -= to - from;
}

void freed_forget(struct process *process, uint64_t begin, uint64_t end)
{
    uint32_t from = freed_at_or_after(process, begin), to = from;
    while (to < process->memory.freed_count && process->memory.freed[to].base < end)
        to++;
    if (to > from)
        remove_at(process, from, to);
}

static void remove_oldest(struct process *process)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < process->memory.freed_count; i++)
        if (process->memory.freed[i].site.time_ns < process->memory.freed[oldest].site.time_ns)
            oldest = i;
    remove_at(process, oldest, oldest + 1);
}

/* No two around number `at` overlap. */
static inline bool is_apart(const struct process *process, uint32_t at)
{
    const struct freed *freed = process->memory.freed;
    for (uint32_t i = at > 2 ? at - 2 : 0; i + 1 < process->memory.freed_count && i <= at + 1; i++)
        if (freed[i].base + freed[i].bytes > freed[i + 1].base)
            return false;
    return true;
}

int freed_add(struct process *process, const struct freed *freed)
{
    freed_forget(process, freed->base, freed->base + freed->bytes);
    if (process->memory.freed_count >= FREED_MAX)
        remove_oldest(process);
    struct freed *grown = array_room(process->memory.freed, sizeof *grown,
                                     process->memory.freed_count, &process->memory.freed_capacity,
                                     16);
    if (!grown)
        return -1;
    process->memory.freed = grown;
    uint32_t at = freed_at_or_after(process, freed->base);
    memmove(&grown[at + 1], &grown[at], (process->memory.freed_count++ - at) * sizeof *grown);
    grown[at] = *freed;
    invariant(is_apart(process, at), "freed ranges are sorted and do not overlap");
    return 0;
}

const struct freed *freed_find(const struct process *process, uint64_t begin, uint64_t end)
{
    uint32_t i = freed_at_or_after(process, begin);
    return i < process->memory.freed_count && process->memory.freed[i].base < end
               ? &process->memory.freed[i]
               : NULL;
}
