/* known.h: a set of ids (of strings, stacks) that were emitted already.
 *
 * A direct-mapped table: an id that was replaced by another is simply emitted again. It has no
 * locks; two threads that emit the same thing at the same time do no harm. */
#ifndef DDPCHECK_KNOWN_H
#define DDPCHECK_KNOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { KNOWN_IDS = 8192 };

struct emitted_ids {
    _Atomic uint64_t id[KNOWN_IDS];
};

static inline bool known_has(struct emitted_ids *known, uint64_t id)
{
    return atomic_load_explicit(&known->id[id % KNOWN_IDS], memory_order_relaxed) == id;
}

/* To be called after the notices were appended, so that a lost notice is tried again. */
static inline void known_add(struct emitted_ids *known, uint64_t id)
{
    atomic_store_explicit(&known->id[id % KNOWN_IDS], id, memory_order_relaxed);
}

#endif
