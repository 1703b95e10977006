/* known.h: which strings, stacks and modules the collector has been told of already.
 *
 * A direct-mapped table: an id that lost its place to another is simply told again. All of it works
 * without locks; two threads that tell the same thing at the same time do no harm. */
#ifndef DDPCHECK_KNOWN_H
#define DDPCHECK_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { KNOWN_IDS = 8192, KNOWN_MODULES = 2048 };

struct known {
    _Atomic uint64_t id[KNOWN_IDS];
};

/* Start addresses of the executable mappings that were told, in no order; 0 ends the list. */
struct known_modules {
    _Atomic uint64_t start[KNOWN_MODULES], end[KNOWN_MODULES];
    _Atomic uint32_t count;
    _Atomic uint32_t scanning; /* one thread at a time looks for new ones */
};

static inline bool known_has(struct known *known, uint64_t id)
{
    return atomic_load_explicit(&known->id[id % KNOWN_IDS], memory_order_relaxed) == id;
}

/* To be called after the notices were appended, so that a lost notice is tried again. */
static inline void known_add(struct known *known, uint64_t id)
{
    atomic_store_explicit(&known->id[id % KNOWN_IDS], id, memory_order_relaxed);
}

#endif
