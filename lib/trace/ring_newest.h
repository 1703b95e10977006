/* ring_newest.h: the newest records of one segment (ring.h) as the collector reads them: copied
 * before their places are taken again. For ring_reader.c. */
#ifndef DDPCHECK_RING_NEWEST_H
#define DDPCHECK_RING_NEWEST_H

#include <stdint.h>

#include "lib/trace/ring.h"

struct newest_reader {
    uint64_t position, copied, head; /* next to take; end of the copies; end of what was written */
    uint64_t missed;                 /* of those before `position`: had been overwritten */
    struct record *copy;             /* by position; serial 0: it was overwritten. NULL: none yet */
};

/* Begins where the file says that an earlier reader ended. */
void newest_begin(struct newest_reader *newest, struct ring_segment *segment);

/* Copies what was written since. Returns 1 if records wait, 0 if not, or -1: it is damaged, or -2:
 * memory is short. */
int newest_look(struct newest_reader *newest, struct ring_segment *segment,
                struct newest_slot *slots, uint32_t capacity);

/* The next record that is there; one must wait. */
static inline const struct record *newest_next(const struct newest_reader *newest,
                                               uint32_t capacity)
{
    return &newest->copy[newest->position & (capacity - 1)];
}

/* Goes on to the next that is there. Returns whether there is one. */
int newest_advance(struct newest_reader *newest, uint32_t capacity);

#endif
