/* clock.h: a vector clock: for each timeline (order.h), the last position on it that is ahead of
 * something.
 *
 * Work on one timeline is in order, so its last position stands for all before it. Sorted by
 * timeline. Zero-initialised is empty. */
#ifndef DDPCHECK_CLOCK_H
#define DDPCHECK_CLOCK_H

#include <stdint.h>

/* Where a piece of work stands. Its position is the serial of the record that issued it, so a place
 * says as well which of two pieces of work was issued first. Timelines are never used again. */
struct place {
    uint64_t timeline;
    uint64_t position;
};

struct clock {
    struct place *entry;
    uint32_t count, capacity;
    uint64_t version; /* grows with each change */
    uint64_t pruned;  /* order.c: which of the host's waits were taken out last */
    uint64_t unknown; /* of what was issued up to this position on any timeline it is not known
                         whether it is ahead */
};

/* Both raise what is there. Return 0, or -1 with errno = ENOMEM. */
int clock_raise(struct clock *clock, struct place place);
int clock_merge(struct clock *clock, const struct clock *other);
void clock_raise_unknown(struct clock *clock, uint64_t position);
/* The last position on the timeline that is in it; 0 none. */
uint64_t clock_at(const struct clock *clock, uint64_t timeline);
void clock_clear(struct clock *clock);
void clock_free(struct clock *clock);

#endif
