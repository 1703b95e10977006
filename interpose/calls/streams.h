/* streams.h: notice_stream: streams that the program made unseen, before the shim awoke or by ways
 * that it does not watch. Whether such a stream waits for the default stream is asked of CUDA when
 * it is first used, so that the analyzer knows what is ordered. */
#ifndef DDPCHECK_STREAMS_H
#define DDPCHECK_STREAMS_H

#include <stdint.h>

#include "interpose/process/shim.h"

struct thread;

void streams_tell_slow(struct thread *thread, uint64_t stream);

/* Before the first record that names a stream. The default streams are known to everybody. */
static inline void streams_tell(struct thread *thread, uint64_t stream)
{
    enum { LAST_SPECIAL = 2 };
    if (stream > LAST_SPECIAL && !handles_has(&shim.streams, stream))
        streams_tell_slow(thread, stream);
}

static inline void streams_made(uint64_t stream)
{
    handles_add(&shim.streams, stream);
}

static inline void streams_gone(uint64_t stream)
{
    handles_remove(&shim.streams, stream);
}

#endif
