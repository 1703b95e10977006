/* ring_reader_internal.h: what the files of the ring reader share: ring_open.c maps and checks a
 * ring file, ring_pass.c takes its records, ring_reader.c gives back what was taken. */
#ifndef DDPCHECK_RING_READER_INTERNAL_H
#define DDPCHECK_RING_READER_INTERNAL_H

#include <sys/types.h>

#include "lib/trace/ring_newest.h"
#include "lib/trace/ring_reader.h"

/* Sources of records: of each segment its rings and its newest records. */
enum { SOURCE_NEWEST = RING_KINDS, SOURCES };

struct ring_cursor {
    uint64_t position, head; /* next to take; end of what may be taken */
    unsigned part, parts;    /* that of `position`; parts found so far */
    struct ring_part chain[RING_PARTS];
};

/* What is known of a segment: checked, and never read again from the file. */
struct segment_reader {
    uint64_t offset;
    struct ring_cursor ring[RING_KINDS];
    uint64_t newest_offset; /* 0: they are not in use so far */
    uint32_t newest_records;
    struct newest_reader newest;
};

/* The payload hashes that the GPU writes, and what was taken of them. */
struct hash_reader {
    unsigned entries, count;
    struct ring_hash *hash; /* room for `entries`; NULL without hashing */
    uint64_t *reported;     /* by entry: the ticket that was reported and is to be given back */
    uint64_t lost;
    uint64_t tickets, seen_ns; /* when all entries were last read, */
    bool pending;              /* which found some that are not done, or not given back */
};

struct ring_reader {
    char *path;
    int fd;
    struct ring_file *file;
    uint64_t mapped;
    const struct ring_file *header; /* mapped once more: `file` moves when it grows */
    char *words;                    /* path of the file that has the slots and hash entries, */
    struct progress_slot *shared;   /* and its mapping; NULL: they are in the ring file */
    dev_t device;
    ino_t inode;
    struct process_info process;
    uint64_t pid_namespace;
    bool locked;
    uint32_t newest_records; /* of a segment as it begins; 0: none */
    uint64_t header_bytes;
    struct segment_reader *segment;
    unsigned segments;
    size_t heap_room;
    unsigned *heap, heap_size; /* sources with records left, by the serial of the next one */
    unsigned members_max, members;
    struct ring_member_state *member; /* room for members_max */
    uint64_t lost[RING_KINDS];
    struct hash_reader hashes;
    /* Serials are dense, so what is missing is either lost, and counted, or still to come. */
    uint64_t highest, taken, excused;
    bool began, resumed, patient;
    uint64_t now_ns, waiting_for, waiting_since;
    bool held_back;
};

static inline struct ring_segment *ring_reader_segment(const struct ring_reader *reader,
                                                       unsigned segment)
{
    return (struct ring_segment *)((char *)reader->file + reader->segment[segment].offset);
}

/* The payload hashes, in the ring file or in the file of shared memory. */
static inline struct hash_entry *ring_reader_entries(const struct ring_reader *reader)
{
    return reader->shared ? (struct hash_entry *)(reader->shared + RING_SLOTS_MAX)
                          : ring_hashes(reader->file);
}

/* Runs the action; -1 with err, too, if the file is cut off meanwhile. */
int ring_reader_guard(struct ring_reader *reader,
                      int (*action)(struct ring_reader *, struct error *), struct error *err);
/* Returns -1 with err. */
int ring_reader_report_cut(const struct ring_reader *reader, struct error *err);

/* ring_segments.c: finds the segments that came since the last look. Returns 0, or -1 with err. */
int ring_reader_find_segments(struct ring_reader *reader, struct error *err);
/* Sees how far a ring is written, in parts that are mapped. Returns 0, or -1 with err. */
int ring_reader_look_at_ring(struct ring_reader *reader, unsigned segment, int kind,
                             struct error *err);
/* Finds out where the segment's newest records lie, once there are any. Returns whether that is
 * known, or -1 with err. */
int ring_reader_find_newest(struct ring_reader *reader, unsigned segment, struct error *err);
/* The record at a position of one of the parts found. */
static inline const struct record *ring_reader_record(const struct ring_reader *reader,
                                                      const struct ring_cursor *cursor)
{
    const struct ring_part *part = &cursor->chain[cursor->part];
    return (const struct record *)((const char *)reader->file + part->offset) +
           (cursor->position & (part->records - 1));
}
/* The next position is in the last part that begins at it or before it. */
static inline void ring_reader_find_part(struct ring_cursor *cursor)
{
    while (cursor->part + 1 < cursor->parts &&
           cursor->chain[cursor->part + 1].begin <= cursor->position)
        cursor->part++;
}

/* ring_open.c: maps the file up to `needed` bytes if it has grown that far. Returns 1; 0 if this
 * process has not the descriptors or memory now; -1 with err. */
int ring_reader_grow(struct ring_reader *reader, uint64_t needed, struct error *err);

#endif
