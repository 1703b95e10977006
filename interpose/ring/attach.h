/* attach.h: gives a thread its caches and its segment of the ring file. */
#ifndef DDPCHECK_ATTACH_H
#define DDPCHECK_ATTACH_H

#include "interpose/shim/thread.h"

/* Makes the key whose destructor gives segments back. Returns false, having printed why, if there
 * is none. */
bool attach_start(void);

/* Gives the calling thread its caches and, if there is one, a segment. Returns false if the thread
 * can't be recorded at all (it is ending, or memory is short). */
bool attach_thread(struct shim_thread *thread);

/* Gives a thread that ends the process a segment, if it has none: without malloc, which
 * pthread_setspecific may call. The segment is not given back. From now on CUDA, which may be
 * locked as well, is not queried for the thread's device. */
void attach_at_end(struct shim_thread *thread);

/* Tries to get a segment again if there was none the last time and one was given back since. */
void attach_retry(struct shim_thread *thread);

/* In the child of a fork: what the parent's thread had is not the child's. */
void attach_forked(void);

#endif
