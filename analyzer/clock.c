#include "analyzer/clock.h"

#include <stdlib.h>

#include "analyzer/array.h"

int clock_raise(struct clock *clock, uint64_t slot, uint64_t launch)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        if (clock->entry[i].slot != slot)
            continue;
        if (clock->entry[i].launch < launch) {
            clock->entry[i].launch = launch;
            clock->version++;
        }
        return 0;
    }
    struct clock_entry *grown = array_room(clock->entry, sizeof *grown, clock->count, &clock->capacity, 4);
    if (!grown)
        return -1;
    clock->entry = grown;
    clock->entry[clock->count++] = (struct clock_entry){slot, launch};
    clock->version++;
    return 0;
}

int clock_merge(struct clock *clock, const struct clock *other)
{
    for (uint32_t i = 0; i < other->count; i++)
        if (clock_raise(clock, other->entry[i].slot, other->entry[i].launch))
            return -1;
    return 0;
}

uint64_t clock_at(const struct clock *clock, uint64_t slot)
{
    for (uint32_t i = 0; i < clock->count; i++)
        if (clock->entry[i].slot == slot)
            return clock->entry[i].launch;
    return 0;
}

void clock_drop(struct clock *clock, uint32_t index)
{
    clock->entry[index] = clock->entry[--clock->count];
    clock->version++;
}

void clock_clear(struct clock *clock)
{
    clock->count = 0;
    clock->version++;
}

void clock_free(struct clock *clock)
{
    free(clock->entry);
    *clock = (struct clock){0};
}
