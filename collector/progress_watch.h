/* progress_watch.h: how far the GPU streams of the watched processes got, and when.
 *
 * A GPU writes what it has reached into a page of the process's ring file, without a time. A thread
 * reads these pages every millisecond, so that single operations are known to a millisecond. When
 * nothing changes the readings become rarer: after a pause the next one comes within a 256th of the
 * pause, and once that is REST_MS the thread rests until a reading of the collector's own passes
 * finds a change. So a job that hangs or is idle costs nothing.
 *
 * A change of a slot is one sample. Where nothing ran at the reading before, and what began since
 * is done, it says how long ago that reading was: all of it began later. Bounded: when nobody takes
 * the samples, changes are merged into the next one for which there is room.
 *
 * Only the thread that made a watch calls these functions. */
#ifndef DDPCHECK_PROGRESS_WATCH_H
#define DDPCHECK_PROGRESS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/ring_reader.h"

enum { PROGRESS_SAMPLES = 1024 };

struct progress_sample {
    uint64_t time_ns; /* of the reading */
    struct ring_progress reached;
    uint32_t slot, idle_us; /* as in the record */
};

struct progress_watch;
struct watched_progress; /* of one process */

/* NULL when memory is short. */
struct progress_watch *progress_watch_new(void);
/* All processes have been removed, or are not used any more. */
void progress_watch_free(struct progress_watch *watch);

/* Watches the process whose file is read, until it is removed; the reader is borrowed. NULL when
 * memory is short. */
struct watched_progress *progress_watch_add(struct progress_watch *watch,
                                            const struct ring_reader *reader);
void progress_watch_remove(struct watched_progress *watched);

/* Takes up to `room` samples, oldest first; the last reading is of this moment if `is_last`, or
 * else at most a millisecond old. Returns how many. */
int progress_watch_take(struct watched_progress *watched, bool is_last,
                        struct progress_sample *samples, int room);

#endif
