/* clock.c: vector clocks, as sorted arrays. */
#include "analyzer/model/clock.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/invariant.h"

/* Index of the first entry whose timeline is not below. */
static uint32_t entry_at_or_after(const struct clock *clock, uint64_t timeline)
{
    uint32_t low = 0, high = clock->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (clock->entry[middle].timeline < timeline)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int make_room(struct clock *clock, uint32_t count)
{
    if (count <= clock->capacity)
        return 0;
    uint32_t capacity = clock->capacity ? clock->capacity : 4;
    while (capacity < count)
        capacity *= 2;
    struct place *grown = realloc(clock->entry, capacity * sizeof *grown);
    if (!grown)
        return -1;
    clock->entry = grown;
    clock->capacity = capacity;
    return 0;
}

/* Timelines rise strictly around entry `i`. */
static bool is_in_order(const struct clock *clock, uint32_t i)
{
    uint32_t first = i > 2 ? i - 2 : 0;
    for (uint32_t k = first; k + 1 < clock->count && k <= i + 1; k++)
        if (clock->entry[k].timeline >= clock->entry[k + 1].timeline)
            return false;
    return true;
}

int clock_raise(struct clock *clock, struct place place)
{
    uint32_t i = entry_at_or_after(clock, place.timeline);
    if (i < clock->count && clock->entry[i].timeline == place.timeline) {
        if (clock->entry[i].position < place.position) {
            clock->entry[i].position = place.position;
            clock->version++;
        }
        return 0;
    }
    if (make_room(clock, clock->count + 1))
        return -1;
    memmove(&clock->entry[i + 1], &clock->entry[i], (clock->count++ - i) * sizeof *clock->entry);
    clock->entry[i] = place;
    invariant(is_in_order(clock, i), "the timelines of a clock rise");
    clock->version++;
    return 0;
}

void clock_raise_unknown(struct clock *clock, uint64_t position)
{
    if (clock->unknown < position) {
        clock->unknown = position;
        clock->version++;
    }
}

/* How many timelines of `other` are not in the clock. */
static uint32_t count_new(const struct clock *clock, const struct clock *other)
{
    uint32_t i = 0, added = 0;
    for (uint32_t k = 0; k < other->count; k++) {
        while (i < clock->count && clock->entry[i].timeline < other->entry[k].timeline)
            i++;
        added += i == clock->count || clock->entry[i].timeline != other->entry[k].timeline;
    }
    return added;
}

int clock_merge(struct clock *clock, const struct clock *other)
{
    clock_raise_unknown(clock, other->unknown);
    uint32_t added = other->count ? count_new(clock, other) : 0;
    if (make_room(clock, clock->count + added))
        return -1;
    uint32_t from = clock->count, k = other->count, to = clock->count + added;
    bool changed = added;
    while (k) { /* from the end, so that nothing is overwritten that is still needed */
        struct place theirs = other->entry[k - 1];
        if (from && clock->entry[from - 1].timeline > theirs.timeline) {
            clock->entry[--to] = clock->entry[--from];
            continue;
        }
        if (from && clock->entry[from - 1].timeline == theirs.timeline) {
            uint64_t mine = clock->entry[--from].position;
            changed |= mine < theirs.position;
            theirs.position = mine < theirs.position ? theirs.position : mine;
        }
        clock->entry[--to] = theirs;
        invariant(k == other->count || theirs.timeline < other->entry[k].timeline,
                  "the timelines of a clock that is merged rise");
        k--;
    }
    clock->count += added;
    clock->version += changed;
    return 0;
}

uint64_t clock_at(const struct clock *clock, uint64_t timeline)
{
    uint32_t i = entry_at_or_after(clock, timeline);
    return i < clock->count && clock->entry[i].timeline == timeline ? clock->entry[i].position : 0;
}

void clock_clear(struct clock *clock)
{
    clock->count = 0;
    clock->unknown = 0;
    clock->version++;
}

void clock_free(struct clock *clock)
{
    free(clock->entry);
    *clock = (struct clock){0};
}
