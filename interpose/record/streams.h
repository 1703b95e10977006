/* streams.h: which streams are known to the analyzer, and which of them the default stream orders.
 *
 * A stream that the program made before the shim started, or in ways that the wrappers do not see,
 * is recorded (notice_stream) when it is first used: CUDA is queried whether it waits for the
 * default stream. */
#ifndef DDPCHECK_STREAMS_H
#define DDPCHECK_STREAMS_H

#include <stdint.h>

#include "interpose/shim/handles.h"
#include "interpose/shim/thread.h"

extern struct streams {
    struct handles recorded;
    struct handles nonblocking; /* streams that the default stream does not wait for */
    _Atomic uint32_t blocking;  /* there are streams that the default stream orders */
    _Atomic uint64_t legacy_recorded, legacy_kept; /* by device: work on the default stream */
} streams;

void streams_record_slow(struct shim_thread *thread, uint64_t stream);

/* Before the first record that names a stream. The default streams need no record. */
static inline void streams_record(struct shim_thread *thread, uint64_t stream)
{
    enum { LAST_SPECIAL = 2 };
    if (stream > LAST_SPECIAL && !handles_has(&streams.recorded, stream))
        streams_record_slow(thread, stream);
}

/* A stream is known from now on, with its flags. */
void streams_add(struct shim_thread *thread, uint64_t stream, unsigned flags);
/* It was destroyed. */
void streams_remove(uint64_t stream);

/* Whether work on the stream orders work on others, so that it has to be recorded even if what it
 * touches does not matter. Remembers the work on the default stream that was not recorded. */
bool streams_orders_others(struct shim_thread *thread, uint64_t stream);

/* In the child of a fork. */
void streams_forked(void);

#endif
