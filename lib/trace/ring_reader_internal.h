/* ring_reader_internal.h: what the files of the ring reader share: ring_open.c maps and checks a
 * ring file, ring_pass.c takes its records, ring_reader.c gives back what was taken. */
#ifndef DDPCHECK_RING_READER_INTERNAL_H
#define DDPCHECK_RING_READER_INTERNAL_H

#include <sys/types.h>

#include "lib/trace/ring_newest.h"
#include "lib/trace/ring_reader.h"

/* Sources of records: the rings, then the newest records of each segment. */
enum { RINGS_MAX = RING_SEGMENTS_MAX * RING_KINDS, SOURCES_MAX = RINGS_MAX + RING_SEGMENTS_MAX };

struct ring_cursor {
    uint64_t position, head; /* next to take; end of what may be taken */
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
    uint32_t record_version;
    uint32_t capacity[RING_KINDS];
    uint64_t segment_bytes,
        header_bytes; /* as checked; the file's may be overwritten at any time */
    unsigned rings;
    struct ring_cursor cursor[RINGS_MAX];
    uint32_t newest_records; /* of each segment; 0: the file has none */
    struct newest_reader newest[RING_SEGMENTS_MAX];
    unsigned heap[SOURCES_MAX],
        heap_size; /* sources with records left, by the serial of the next one */
    unsigned members_max, members;
    struct ring_member_state *member; /* room for members_max */
    uint64_t lost[RING_KINDS];
    unsigned hash_entries, hashes;
    struct ring_hash *hash; /* room for hash_entries; NULL without hashing */
    uint64_t *hash_reported,
        hashes_lost; /* by entry: the ticket that was reported and is to be given back */
    uint64_t hash_tickets, hashes_seen_ns; /* at the last look at all entries, */
    bool hashes_pending; /* which found some that are not done, or not given back */
    /* Serials are dense, so what is missing is either lost, and counted, or still to come. */
    uint64_t highest, taken, excused;
    bool began, resumed, patient;
    uint64_t now_ns, waiting_for, waiting_since;
    bool held_back;
};

static inline struct ring_segment *ring_reader_segment(const struct ring_reader *reader,
                                                       unsigned ring)
{
    return (struct ring_segment *)((char *)reader->file + reader->header_bytes +
                                   ring / RING_KINDS * reader->segment_bytes);
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

/* ring_open.c: maps the file up to `needed` bytes if it has grown that far. Returns 1; 0 if this
 * process has not the descriptors or memory now; -1 with err. */
int ring_reader_grow(struct ring_reader *reader, uint64_t needed, struct error *err);

#endif
