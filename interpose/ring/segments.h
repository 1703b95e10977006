/* segments.h: gives threads their segments of the ring file, and more room to a ring that is full.
 *
 * A segment begins with 48 KB. A segment's thread keeps the state of its rings in struct
 * ring_writer, in memory of the process alone: what the program's wild pointers write into the
 * shared mapping makes records wrong or lost, and nothing worse (ring.h). */
#ifndef DDPCHECK_SEGMENTS_H
#define DDPCHECK_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/trace/ring.h"

struct ring_writer {
    _Atomic(struct ring_writer *) next; /* of the process, in the order in which they came */
    _Atomic uint32_t thread;            /* kernel thread id of the owner, 0: free */
    struct ring_segment *segment;
    struct ring_end end[RING_KINDS];
    uint32_t parts[RING_KINDS];
    uint32_t newest_records;
    struct newest_slot *newest;
    bool newest_chosen;           /* it has the newest records that it keeps */
    uint64_t refused[RING_KINDS]; /* 1 + the tail at which the ring got no more room */
};

/* A segment for a thread: one that an ended thread gave back, else a new one at the file's end.
 * Returns NULL if the budget is used up (budget.h). */
struct ring_writer *segments_take(uint32_t thread);

/* A thread gives its segment back: another may take it. */
void segments_end(struct ring_writer *writer);
/* How often a segment was given back: if it changed, a new search for a free one may succeed. */
uint32_t segments_ended(void);
/* Whether the thread has a segment, so that calls of it were recorded. */
bool segments_has_thread(uint32_t thread);

/* The ring is full: adds a part to it. Returns false if the budget has no room for one; after that
 * it is asked again when the collector has read on. Only for the segment's own thread. */
bool segments_grow(struct ring_writer *writer, int kind);
/* Lets a ring grow until its last part has that many records, as far as it can. Returns how many it
 * has. Only for the segment's own thread. */
uint32_t segments_make_room(struct ring_writer *writer, int kind, size_t records);
/* The control ring can't grow: puts a record among the newest ones. At the first one they get as
 * much room as the budget has. Only for the segment's own thread. */
void segments_append_newest(struct ring_writer *writer, const struct record *record);

/* In the child of a fork, before files_forked: the segments are the parent's. */
void segments_forked(void);

#endif
