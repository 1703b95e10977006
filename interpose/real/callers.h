/* callers.h: finds the NCCL that a caller is linked with.
 *
 * NCCL's symbols have no version, so where two libraries of a process bring an NCCL each, all their
 * calls come to one wrapper. They are distinguished by the return address: a library's call goes to
 * the NCCL that the loader finds for that library. Only one of the two is recorded, because
 * communicators of one can't be given to functions of the other. */
#ifndef DDPCHECK_CALLERS_H
#define DDPCHECK_CALLERS_H

#include "interpose/real/resolve.h"

enum { CALLERS_MAX = 4096, CALLERS_PROBES = 8 };

/* Where the real function is not of the NCCL that is recorded, its address has this bit. */
#define CALLERS_OTHER (1ull << 63)

/* Written once: the real function for a call and a return address. Both are the key: a library that
 * calls what it is given (libffi) has one return address for all calls. */
extern struct callers {
    struct caller {
        _Atomic uint64_t key, real; /* real: 0 until it is known */
    } caller[CALLERS_MAX];
} callers;

uint64_t callers_find_slow(enum call_id id, const void *site);

static inline uint64_t callers_key(enum call_id id, const void *site)
{
    return (uint64_t)(uintptr_t)site << 16 | id;
}

static inline struct caller *callers_slot(uint64_t key, unsigned probe)
{
    return &callers.caller[((key * 0x9e3779b97f4a7c15u >> 40) + probe) % CALLERS_MAX];
}

/* The real function of NCCL for a call from `site`, NULL if there is none. *other: it is of an NCCL
 * whose calls are not recorded. */
static inline void *callers_resolve(enum call_id id, const void *site, bool *other)
{
    uint64_t key = callers_key(id, site), real = 0;
    struct caller *first = callers_slot(key, 0);
    if (atomic_load_explicit(&first->key, memory_order_relaxed) == key)
        real = atomic_load_explicit(&first->real, memory_order_relaxed);
    if (!real)
        real = callers_find_slow(id, site);
    *other = real & CALLERS_OTHER;
    return (void *)(uintptr_t)(real & ~CALLERS_OTHER);
}

#endif
