/* handles.h: a set of handles (streams, graph instances) that the shim has seen.
 *
 * A fixed open-addressed table without locks. A handle for which there is no room counts as
 * unknown, which costs another query, no more. Two threads may add the same handle twice; removing
 * takes out both. */
#ifndef DDPCHECK_HANDLES_H
#define DDPCHECK_HANDLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HANDLES_MAX = 4096, HANDLES_PROBES = 16 };

struct handles {
    _Atomic uint64_t handle[HANDLES_MAX];
};

static inline _Atomic uint64_t *handles_slot(struct handles *set, uint64_t handle, uint32_t probe)
{
    return &set->handle[((handle * 0x9e3779b97f4a7c15u >> 40) + probe) % HANDLES_MAX];
}

static inline bool handles_has(struct handles *set, uint64_t handle)
{
    for (uint32_t i = 0; i < HANDLES_PROBES; i++)
        if (atomic_load_explicit(handles_slot(set, handle, i), memory_order_relaxed) == handle)
            return true;
    return false;
}

static inline void handles_add(struct handles *set, uint64_t handle)
{
    for (uint32_t i = 0; i < HANDLES_PROBES && !handles_has(set, handle); i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(handles_slot(set, handle, i), &none, handle))
            return;
    }
}

static inline void handles_remove(struct handles *set, uint64_t handle)
{
    for (uint32_t i = 0; i < HANDLES_PROBES; i++) {
        uint64_t found = handle;
        atomic_compare_exchange_strong(handles_slot(set, handle, i), &found, 0);
    }
}

#endif
