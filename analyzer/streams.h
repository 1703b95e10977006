/* streams.h: what is ahead of each stream and in each event, by CUDA's rules of order.
 *
 * Sources: CUDA runtime API, "Stream synchronization behavior": work on the legacy default stream waits
 * for all work on the device's blocking streams, and work on these waits for it. Streams made with
 * cudaStreamNonBlocking are not part of that. A stream whose creation was not seen is taken as one that
 * is not: this can only miss waits, never invent them. */
#ifndef DDPCHECK_STREAMS_H
#define DDPCHECK_STREAMS_H

#include "analyzer/engine.h"

/* The stream of a record; made known if it is not. NULL with errno = ENOMEM. */
struct stream_state *stream_get(struct process *process, const struct record *record);
/* Whether it is a legacy default stream. */
bool stream_is_default(const struct stream_state *stream);
/* Whether the creation of all streams of the process was seen, and so which the default stream is ordered with. */
bool streams_are_known(const struct process *process);
/* Work was put on the stream: orders it with the legacy default stream. 0 or -1 (ENOMEM). */
int stream_put(struct process *process, struct stream_state *stream);
/* STREAM and EVENT records. ENGINE_*. */
int streams_feed(struct process *process, const struct record *record);
/* What a call of class WAIT must wait for, added to `clock`. 0 or -1 (ENOMEM). */
int streams_waited_for(struct process *process, const struct record *record, struct clock *clock);
void streams_free(struct process *process);

#endif
