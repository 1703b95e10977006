/* ring_reader.h: the collector's side of one ring file (ring.h).
 *
 * Nothing in the file is believed: every size and offset is checked against the real file, and a
 * file that is cut while it is mapped gives an error, not a SIGBUS (the handler is installed by the
 * first ring_reader_open). After an error a reader is good for nothing but its error and
 * ring_reader_close.
 *
 * Reading goes in passes: look, take until nothing is left, store what was taken, publish. */
#ifndef DDPCHECK_RING_READER_H
#define DDPCHECK_RING_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/record.h"
#include "lib/trace/ring.h"

struct ring_reader;

enum ring_reader_opened { RING_READER_OPEN = 0, RING_READER_NOT_READY = 1, RING_READER_LATER = 2 };

/* Maps a ring file. Returns RING_READER_OPEN; RING_READER_NOT_READY if its producer has not
 * finished the header (it holds no record then); RING_READER_LATER with err if this process has not
 * enough descriptors or memory; -1 with err if it is no ring file, damaged, or can't be read. */
int ring_reader_open(struct ring_reader **reader, const char *path, struct error *err);
void ring_reader_close(struct ring_reader *reader);

/* True if the header names a file for what the GPU writes, and it can't be opened here: how far the
 * GPU got stays unknown. */
bool ring_reader_words_missing(const struct ring_reader *reader);
/* Removes the ring file and what belongs to it. */
void ring_reader_remove(const struct ring_reader *reader);

const struct process_info *ring_reader_process(const struct ring_reader *reader);
/* What the header says of the producer's life (ring.h): its PID namespace, and whether it has a
 * lock on the file as long as it runs. */
uint64_t ring_reader_pid_namespace(const struct ring_reader *reader);
bool ring_reader_locked(const struct ring_reader *reader);
/* The open file, for its locks; -1 once it was released: the mapping needs none. */
int ring_reader_descriptor(const struct ring_reader *reader);
void ring_reader_release_descriptor(struct ring_reader *reader);

/* Begins a pass: sees how far the producer has got. patient: wait a little for a record whose
 * serial is missing between others (its thread is just writing it), instead of taking what comes
 * after. Returns 0, or -1 with err. */
int ring_reader_look(struct ring_reader *reader, uint64_t now_ns, bool patient, struct error *err);

/* Takes up to `max` records that were there at the last look, in the order of their serials over
 * all rings. Returns how many, or -1 with err if nothing could be taken because the file is
 * damaged. */
int ring_reader_take(struct ring_reader *reader, struct record *records, int max,
                     struct error *err);

/* True if all records that were there at the last look were taken. */
bool ring_reader_drained(const struct ring_reader *reader);

/* Segments known so far (ring.h), and how far one was taken: the next positions of its rings and
 * of its newest records, and how many of these had been overwritten before. */
struct segment_position {
    uint64_t ring[RING_KINDS], newest, newest_missed;
};
unsigned ring_reader_segments(const struct ring_reader *reader);
struct segment_position ring_reader_position(const struct ring_reader *reader, unsigned segment);
/* Goes on at a position that was stored before, where that is further. */
void ring_reader_seek(struct ring_reader *reader, unsigned segment,
                      const struct segment_position *stored);

/* Members whose state the process keeps, as of the last look: those numbered below `issued` were
 * seen or lost by then. Their number, and one of them. */
struct ring_member_state {
    uint64_t comm, issued;
    int32_t rank;
};
unsigned ring_reader_members(const struct ring_reader *reader);
struct ring_member_state ring_reader_member(const struct ring_reader *reader, unsigned index);

/* Gives the taken records' room back to the producer. Only when they are safely stored. */
int ring_reader_publish(struct ring_reader *reader, struct error *err);

/* Payload hashes that were finished at the last look and not reported yet: their number, each
 * (valid until the next look), and that it was reported: its entry is given back at the next
 * publish. The same hash may come again, to another reader, if the collector is killed before that.
 */
struct ring_hash {
    uint64_t comm, number, bytes, serial, name, hash;
    uint32_t nans, infs, flags;
    int32_t rank;
    uint16_t api;
    uint8_t what, expects;
    unsigned entry;
    uint64_t ticket;
};
unsigned ring_reader_hashes(const struct ring_reader *reader);
const struct ring_hash *ring_reader_hash(const struct ring_reader *reader, unsigned index);
void ring_reader_hash_reported(struct ring_reader *reader, unsigned index);
uint64_t ring_reader_hashes_lost(const struct ring_reader *reader);

/* As of the last look: records lost so far. */
uint64_t ring_reader_lost(const struct ring_reader *reader, int kind);

/* What the GPU has reached by now, of all slots in use (room for RING_SLOTS_MAX). What it has
 * reached was issued in a record that the next look sees. This function alone may be called by
 * another thread while the reader is in use. Returns how many slots there are, or a negative number
 * if the file was cut off. */
struct ring_progress {
    uint64_t started, done;
};
int ring_reader_progress(const struct ring_reader *reader, struct ring_progress *slot);
/* The last serial that the process has given out by now; 0 if the file was cut off. */
uint64_t ring_reader_serial(const struct ring_reader *reader);

/* Asks the process where its threads stand: notices of them follow, if it can answer (once per call
 * of this). */
void ring_reader_ask(struct ring_reader *reader);

/* How often the process has asked whether any child has exited while none had. */
uint32_t ring_reader_child_polls(const struct ring_reader *reader);

/* The collector leaves the process, which goes on; or one has come. NULL: nothing happens. */
void ring_reader_leave(struct ring_reader *reader, bool leaves);

#endif
