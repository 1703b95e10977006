/* operations.h: collectives, sends and receives on their way from the call to the stream.
 *
 * NCCL issues the calls of a group when the outermost ncclGroupEnd is called; so they are kept
 * until then, and issued together, each knowing what its group holds. */
#ifndef DDPCHECK_OPERATIONS_H
#define DDPCHECK_OPERATIONS_H

#include "analyzer/engine.h"

/* ENTER of a collective, send or receive. ENGINE_*. */
int operations_feed(struct event *event);
/* Issues the thread's open group. 0 or -1 (ENOMEM). */
int operations_close_group(struct thread *thread);

#endif
