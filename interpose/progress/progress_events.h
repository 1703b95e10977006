/* progress_events.h: progress by events, for drivers without cuStreamWriteValue64. */
#ifndef DDPCHECK_PROGRESS_EVENTS_H
#define DDPCHECK_PROGRESS_EVENTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

/* Records an event behind which *word becomes at least `value`. False if there is none: all of the
 * pool's are in use, or something is being captured. `device` is current. */
bool progress_events_record(CUstream stream, int device, _Atomic uint64_t *word, uint64_t value);

/* Moves the words whose events were reached. */
void progress_events_poll(void);

/* In the child of a fork: the events are the parent's. */
void progress_events_forked(void);

#endif
