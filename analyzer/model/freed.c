/* freed.c: remembers freed memory until it is allocated again. */
#include "analyzer/model/freed.h"

#include <string.h>

#include "analyzer/model/array.h"

enum { FREED_MAX = 4096 };

/* Index of the first whose end is above the address. */
static uint32_t freed_at_or_after(const struct process *process, uint64_t address)
{
    uint32_t low = 0, high = process->freed_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (process->freed[middle].base + process->freed[middle].bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_at(struct process *process, uint32_t from, uint32_t to)
{
    memmove(&process->freed[from], &process->freed[to],
            (process->freed_count - to) * sizeof *process->freed);
    process->freed_count -= to - from;
}

void freed_forget(struct process *process, uint64_t begin, uint64_t end)
{
    uint32_t from = freed_at_or_after(process, begin), to = from;
    while (to < process->freed_count && process->freed[to].base < end)
        to++;
    if (to > from)
        remove_at(process, from, to);
}

static void remove_oldest(struct process *process)
{
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < process->freed_count; i++)
        if (process->freed[i].site.time_ns < process->freed[oldest].site.time_ns)
            oldest = i;
    remove_at(process, oldest, oldest + 1);
}

int freed_add(struct process *process, const struct freed *freed)
{
    freed_forget(process, freed->base, freed->base + freed->bytes);
    if (process->freed_count >= FREED_MAX)
        remove_oldest(process);
    struct freed *grown = array_room(process->freed, sizeof *grown, process->freed_count,
                                     &process->freed_capacity, 16);
    if (!grown)
        return -1;
    process->freed = grown;
    uint32_t at = freed_at_or_after(process, freed->base);
    memmove(&grown[at + 1], &grown[at], (process->freed_count++ - at) * sizeof *grown);
    grown[at] = *freed;
    return 0;
}

const struct freed *freed_find(const struct process *process, uint64_t begin, uint64_t end)
{
    uint32_t i = freed_at_or_after(process, begin);
    return i < process->freed_count && process->freed[i].base < end ? &process->freed[i] : NULL;
}
