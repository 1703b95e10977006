/* counts.c: kernels of CUB that count: programs read the count and allocate as much memory.
 *
 * A kernel without a twin leaves in its results whatever the memory held before, so that
 * torch.nonzero and print(tensor) would ask for gigabytes. These write 0 instead. */
#include <string.h>

#include "emu/core.h"
#include "emu/core/kernel.h"

/* The last parameter is where the count goes, unless the caller passed an iterator object there. */
static void zero_count(void *const *args, int last)
{
    struct emu_memory memory;
    void *count;

    memcpy(&count, args[last], sizeof(count));
    if (emu_memory_find(count, &memory) &&
        (uintptr_t)count - memory.base + sizeof(uint64_t) <= memory.bytes)
        memset(count, 0, sizeof(uint64_t));
}

static void zero_second(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    zero_count(args, 1);
}

static void zero_third(const struct twin_grid *grid, void *const *args)
{
    (void)grid;
    zero_count(args, 2);
}

/* Their parameters up to the count, as in CUB's dispatch_reduce.cuh and agent_select_if.cuh: what
 * is read, and the count; the state of tiles, their number, and the count. */
static const struct twin counts[] = {
    {"DeviceReduceSingleTileKernel", "[1]l", zero_second},
    {"DeviceCompactInitKernel", "[1]il", zero_third},
};

const struct twin *emu_count_find(const char *name)
{
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (!strcmp(counts[i].name, name))
            return &counts[i];
    return NULL;
}
