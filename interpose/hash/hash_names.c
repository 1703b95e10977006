/* hash_names.c: counts how often each member of a communicator announced each name. */
#include "interpose/hash/hash_names.h"

#include <string.h>

#include "lib/trace/record.h"

#include "interpose/shim/forget.h"

enum { NAMES = 4096 };

/* Never emptied: programs have few names. */
static struct {
    _Atomic uint64_t key; /* hash of member and name; 0 free */
    _Atomic uint64_t calls;
} names[NAMES];

bool hash_names_number(const struct local_member *member, uint64_t name, uint64_t *number)
{
    uint64_t parts[] = {member->comm, (uint64_t)member->rank, name},
             key = string_id((const char *)parts, sizeof parts);
    for (uint64_t i = 0; i < NAMES; i++) {
        _Atomic uint64_t *slot = &names[(key + i) % NAMES].key;
        uint64_t found = atomic_load_explicit(slot, memory_order_relaxed);
        if (!found && atomic_compare_exchange_strong(slot, &found, key))
            found = key;
        if (found == key) {
            *number =
                atomic_fetch_add_explicit(&names[(key + i) % NAMES].calls, 1, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

void hash_names_forked(void)
{
    forget_state(names, sizeof names);
}
