/* guard.h: which call each collective of this host's ranks is (ddpcheck run --guard).
 *
 * A table in a file beside the rings, which all processes of the host map shared: who comes first
 * to an operation of a communicator enters its call, who comes later compares. An entry is one
 * cache line. The table has a fixed size and keeps the newest: an operation whose entry has been
 * taken by another is not compared, so what the table has no room for is never refused. */
#ifndef DDPCHECK_GUARD_H
#define DDPCHECK_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "interpose/shim/thread.h"
#include "lib/trace/signature.h"

/* A call as the table has it. */
struct guarded_call {
    uint64_t comm, number;
    struct signature signature; /* without its group */
    int32_t rank;               /* as people know it; -1 not known */
};

/* Maps the table if DDPCHECK_GUARD asks for it. Returns true: without it the shim records as well.
 */
bool guard_start(void);
/* Whether calls are compared. */
bool guard_is_on(void);
/* Enters the call, or compares it with the one that came first. Returns whether the two differ, so
 * that this one must not be made: which two they are is printed once, and kept for guard_said. */
bool guard_refuses(const struct guarded_call *call);
/* Why the calling thread's last collective was refused, in the form of ncclGetLastError; NULL: it
 * was not. */
const char *guard_said(const struct shim_thread *thread);

#endif
