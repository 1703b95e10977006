/* clock.h: what is ahead of a point in a stream: for each progress slot, the last launch on it.
 *
 * A launch is done when its slot's `done` has reached it (record.h, progress). Launches of one slot are
 * in order, so the last one stands for all. Zero-initialised is empty. */
#ifndef DDPCHECK_CLOCK_H
#define DDPCHECK_CLOCK_H

#include <stdint.h>

struct clock_entry {
    uint64_t slot;      /* key of a struct slot_state (progress.h) */
    uint64_t launch;
};

struct clock {
    struct clock_entry *entry;
    uint32_t count, capacity;
    uint64_t version;   /* grows with each change */
};

/* Both raise what is there. Return 0, or -1 with errno = ENOMEM. */
int clock_raise(struct clock *clock, uint64_t slot, uint64_t launch);
int clock_merge(struct clock *clock, const struct clock *other);
/* The last launch on the slot that is in it; 0 none. */
uint64_t clock_at(const struct clock *clock, uint64_t slot);
/* Takes out the entry at `index`; another one takes its place. */
void clock_drop(struct clock *clock, uint32_t index);
void clock_clear(struct clock *clock);
void clock_free(struct clock *clock);

#endif
