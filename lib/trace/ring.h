/* ring.h: the file through which a process hands its records to the collector.
 *
 * One file per process, mapped shared by both sides:
 *
 *     struct ring_file     who the process is, the progress slots that the GPU writes
 *     struct hash_entry[]  payload hashes that the GPU writes (`hash_entries`, usually 0), to the
 *                          end of the header
 *     struct ring_member[] how many collectives each member has issued (`members`), to the end of
 *                          the header
 *     segments             one per thread: struct ring_segment, control records, bulk records,
 *                          newest records; the header has the offset of the first, each that of
 *                          the one behind it
 *     parts of rings       more records for a thread whose ring was full
 *
 * The file grows as threads come and rings overflow; nothing in it ever moves. Each ring has one
 * producer (the thread) and one consumer (the collector). head and tail only grow. A ring is a
 * chain of parts: a position belongs to the last part that begins at or before it, and lies there
 * at position % records. A part is announced before a position in it is; the consumer reads the
 * older ones to their ends.
 *
 * The producer never waits: if a full ring can't get another part the newest bulk record is dropped
 * and counted in lost. The consumer moves tail only after what it read is safely stored, and the
 * store remembers the position, so that a collector killed between the two neither loses nor
 * doubles a record.
 *
 * The end of a job is what matters. A control record that finds no room goes to the segment's
 * newest records, where it takes the place of the oldest; the consumer counts what it finds
 * overwritten. The last quarter of the control ring is kept for what nothing can replace
 * (communicators, strings, stacks), see ring_control_limit. What a member issued is
 * always in its struct ring_member, whatever was lost.
 *
 * Anything may write into the mapping (a wild pointer of the program). So neither side uses a
 * number from it as an index or a size: what it needs again it keeps in its own memory, the
 * producer in struct ring_end, the consumer after checking it once (ring_reader.h).
 *
 * Used inside the user's process: libc alone. */
#ifndef DDPCHECK_RING_H
#define DDPCHECK_RING_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "lib/trace/record.h"

enum { RING_CONTROL, RING_BULK, RING_KINDS };

enum {
    RING_VERSION = 3,
    RING_PAGE = 4096,
    RING_PARTS = 8,       /* of one ring */
    RING_SLOTS_MAX = 256, /* (communicator member, stream) pairs with GPU progress */
    RING_HASHES = 2048,   /* payload hashes under way at one time, with --hash */
    RING_MEMBERS = 1024,  /* members whose state is kept */
    /* What a thread begins with, in 48 KB: the calls of a quarter of a second of training. The
       parts that follow have RING_GROWTH times as many, up to RING_RECORDS_MAX: 20,000 calls at
       full speed while the collector gets no processor. */
    RING_RECORDS_FIRST = 128,
    RING_GROWTH = 4,
    RING_RECORDS_MAX = 65536,
    RING_NEWEST_FIRST = 64,
    RING_NEWEST_RECORDS = 4096
};

#define RING_MAGIC           "DDPRING1"
#define RING_WORDS_DIRECTORY "/dev/shm/"
#define RING_SUFFIX          ".ring" /* file name: <pid>-<start ticks>.ring */
#define RING_GUARD           "guard" /* file name of the table of --guard */

enum segment_state { SEGMENT_FREE, SEGMENT_ACTIVE, SEGMENT_ENDED };

struct ring {
    _Alignas(64) _Atomic uint64_t head; /* written by the producer */
    _Atomic uint64_t lost;              /* by the producer */
    _Alignas(64) _Atomic uint64_t tail; /* by the consumer */
};

struct ring_part {
    uint64_t begin;   /* the first position in it */
    uint64_t offset;  /* of its first record in the file */
    uint32_t records; /* a power of two */
    uint32_t reserved;
};

struct ring_segment {
    _Atomic uint32_t state;  /* enum segment_state */
    _Atomic uint32_t thread; /* kernel thread id of the owner */
    struct ring ring[RING_KINDS];
    _Alignas(64) _Atomic uint64_t newest_head; /* by the producer */
    _Alignas(64) _Atomic uint64_t newest_tail; /* by the consumer, as far as it is stored, */
    _Atomic uint64_t newest_missed;            /* and how many of these it found overwritten */
    /* By the producer; each is filled in before the number that announces it. */
    _Alignas(64) _Atomic uint64_t next; /* offset of the segment that came after this; 0 none yet */
    _Atomic uint64_t newest_offset;     /* of the newest_slots; never 0 when newest_head is not */
    uint32_t newest_records;            /* filled in before newest_offset */
    _Atomic uint32_t parts[RING_KINDS];
    struct ring_part part[RING_KINDS][RING_PARTS];
    _Alignas(RING_PAGE) struct record records[]; /* control, then bulk, then newest_slots */
};

enum { RECORD_WORDS = RECORD_BYTES / sizeof(uint64_t) };

/* One of the newest records: read while it may be written. `state` is 2 * (position + 1) when the
 * record of that position is complete, and odd while the next one is written. */
struct newest_slot {
    _Atomic uint64_t state;
    _Atomic uint64_t word[RECORD_WORDS];
};

/* How far a member is, whatever became of its records. */
struct ring_member {
    _Alignas(32) _Atomic uint64_t issued; /* collectives numbered below this were issued */
    uint64_t comm;
    int32_t rank;
    _Atomic uint32_t ready; /* 1: comm and rank are valid */
};

/* What a stream's collectives have reached; the GPU writes both words. */
struct progress_slot {
    _Alignas(64) _Atomic uint64_t started;
    _Atomic uint64_t done;
    uint64_t comm;
    uint64_t stream;
    int32_t rank;
    uint32_t reserved;
};

/* A payload hash. Free while `taken` is 0: the shim takes it with a new ticket, fills in what it is
 * of and starts the kernel; the GPU writes `found` and then the ticket to `done`; the collector
 * copies the entry and, once that is stored, frees it. Streams end in any order, so there is no
 * ring: a stuck one holds its own entries only. */
struct hash_entry {
    _Alignas(128) _Atomic uint64_t taken;
    struct hash_found { /* as the kernel writes it (kernels/cuda/payload.cu) */
        uint64_t hash;
        uint32_t nans, infs;
        uint32_t flags, reserved;
        _Atomic uint64_t done;
    } found;
    uint64_t comm, number, bytes, serial, name;
    int32_t rank;
    uint8_t what;    /* enum hash_what */
    uint8_t expects; /* bit by hash_what: which ones the operation will have on this rank */
    uint16_t api;    /* the operation */
};

/* Who the process is. Strings are NUL-terminated and may be cut; -1 stands for "not known". */
struct process_info {
    int32_t pid;
    int32_t rank, local_rank, world_size, restart;
    uint32_t uid;
    uint64_t start_ticks; /* field 22 of /proc/PID/stat: distinguishes two processes with one pid */
    uint64_t realtime_ns,
        monotonic_ns; /* read together: realtime - monotonic places records in time */
    int32_t nccl_version, cuda_runtime_version, cuda_driver_version;
    uint32_t lacks; /* LACKS_* (lacks.h): what the source of the records can't say; preloaded, the
                       shim lacks nothing */
    char boot_id[40];
    char host[64];
    char launcher[16]; /* torchrun, env, openmpi, mpich, jax, slurm, explicit, none */
    char job[64];
    char program[256]; /* path of the executable */
    char command[512]; /* arguments, NUL bytes turned into spaces */
};

struct ring_file {
    char magic[8];
    uint32_t version, record_version, record_bytes, file_header_bytes;
    uint32_t control_records, bulk_records; /* capacities, powers of two */
    uint64_t segment_bytes;
    _Atomic uint32_t ready; /* 1 when all of the above and `process` are filled in */
    uint32_t reserved;
    _Atomic uint32_t slots;        /* progress slots in use */
    _Atomic uint32_t closed;       /* 1 after notice_exit was written */
    _Atomic uint64_t serial;       /* the last serial given out */
    _Atomic uint64_t lost_threads; /* records lost because no segment was to be had */
    struct process_info process;
    uint32_t hash_entries;           /* 0: no hashing */
    _Atomic uint32_t collector_left; /* 1: the collector has ended and the process has not: its next
                                        call of NCCL, or its end, starts another */
    _Atomic uint64_t hash_tickets;   /* given out so far; tickets count from 1 */
    _Atomic uint64_t hash_lost;      /* hashes not made: no entry was free, or the driver refused */
    _Atomic uint32_t
        stacks_wanted; /* goes up when the collector asks where the threads stand; a futex */
    _Atomic uint32_t stacks_reported; /* the last request that was answered */
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid, 0 if not known: what `pid` counts in */
    uint32_t locked; /* 1: while the process runs it has a write lock (fcntl) on the first byte. The
                        lock holds in all namespaces; a process that closes all its descriptors
                        loses it, but keeps the file open by its mapping */
    uint32_t newest_records;      /* of each segment as it begins, a power of two */
    uint32_t members;             /* room for this many */
    _Atomic uint32_t member_next; /* entries given out; may be beyond `members` */
    char words[48]; /* the file of RING_WORDS_DIRECTORY that has `slot` and the hash entries in this
                       one's place: drivers can't pin files on a disk. "": they are here */
    _Atomic uint64_t first_segment; /* offset; 0: no thread has one yet. */
    _Atomic uint32_t child_polls;   /* calls that asked whether any child has exited, and
                                       returned that none has. Older shims don't count */
    _Alignas(RING_PAGE) struct progress_slot slot[RING_SLOTS_MAX];
};

static inline uint64_t ring_pages(uint64_t bytes)
{
    return (bytes + RING_PAGE - 1) / RING_PAGE * RING_PAGE;
}

/* Of a segment as it begins, in whole pages. */
static inline uint64_t ring_segment_bytes(uint32_t control_records, uint32_t bulk_records,
                                          uint32_t newest_records)
{
    return ring_pages(sizeof(struct ring_segment) +
                      ((uint64_t)control_records + bulk_records) * RECORD_BYTES +
                      newest_records * sizeof(struct newest_slot));
}

/* What the GPU writes: the slots and, right behind them, the hash entries. */
static inline uint64_t ring_words_bytes(uint32_t hash_entries)
{
    return RING_SLOTS_MAX * sizeof(struct progress_slot) + hash_entries * sizeof(struct hash_entry);
}

/* The first entry; hash_entries of them. */
static inline struct hash_entry *ring_hashes(struct ring_file *file)
{
    return (struct hash_entry *)(file + 1);
}

/* The first member; `members` of them. */
static inline struct ring_member *ring_members(struct ring_file *file, uint32_t hash_entries)
{
    return (struct ring_member *)(ring_hashes(file) + hash_entries);
}

/* The producer's own side of a ring. */
struct ring_end {
    struct ring *ring;
    struct record *records; /* of the last part */
    uint64_t head, tail;    /* tail: as last read, or the part's beginning */
    uint32_t capacity;      /* of the last part */
};

/* Fills in a new segment, which lies at `offset` of the file: the first part of each ring and the
 * newest records lie behind it. It has ring_segment_bytes(). */
static inline void ring_segment_begin(struct ring_segment *segment, uint64_t offset,
                                      const uint32_t records[RING_KINDS], uint32_t newest_records)
{
    uint64_t at = offset + sizeof *segment;
    for (int kind = 0; kind < RING_KINDS; kind++) {
        segment->part[kind][0] = (struct ring_part){.offset = at, .records = records[kind]};
        atomic_store_explicit(&segment->parts[kind], 1, memory_order_release);
        at += (uint64_t)records[kind] * RECORD_BYTES;
    }
    segment->newest_records = newest_records;
    atomic_store_explicit(&segment->newest_offset, newest_records ? at : 0, memory_order_release);
}

/* The first record of a ring in a segment that has just begun, and its newest records. */
static inline struct record *ring_records(struct ring_segment *segment, int kind)
{
    return segment->records + (kind == RING_BULK ? segment->part[RING_CONTROL][0].records : 0);
}
static inline struct newest_slot *ring_newest(struct ring_segment *segment)
{
    return (struct newest_slot *)(ring_records(segment, RING_BULK) +
                                  segment->part[RING_BULK][0].records);
}

/* The producer's end of a ring with one part, which may have been used before. */
static inline struct ring_end ring_end_of(struct ring *ring, struct record *records,
                                          uint32_t capacity)
{
    return (struct ring_end){ring, records, atomic_load(&ring->head), atomic_load(&ring->tail),
                             capacity};
}

/* Reads how far the collector has got. A tail that can't be leaves the previous. */
static inline void ring_read_tail(struct ring_end *end)
{
    uint64_t tail = atomic_load_explicit(&end->ring->tail, memory_order_acquire);
    if (tail > end->tail && tail <= end->head)
        end->tail = tail;
}

/* Appends a copy of `record` if fewer than `limit` records wait in the last part. Returns 1, or 0.
 * Only the segment's own thread may call it. */
static inline int ring_append_below(struct ring_end *end, uint64_t limit,
                                    const struct record *record)
{
    if (end->head - end->tail >= limit) {
        ring_read_tail(end);
        if (end->head - end->tail >= limit)
            return 0;
    }
    memcpy(&end->records[end->head & (end->capacity - 1)], record, sizeof *record);
    atomic_store_explicit(&end->ring->head, ++end->head, memory_order_release);
    return 1;
}

/* The same up to the last part's capacity; a loss is counted. */
static inline int ring_append(struct ring_end *end, const struct record *record)
{
    if (ring_append_below(end, end->capacity, record))
        return 1;
    atomic_fetch_add_explicit(&end->ring->lost, 1, memory_order_relaxed);
    return 0;
}

/* Puts a record in the place of the oldest of the newest. The words are released one by one, so
 * that a reader that sees one of them sees that the record is being written. */
static inline void ring_append_newest(struct ring_segment *segment, struct newest_slot *slots,
                                      uint32_t capacity, const struct record *record)
{
    uint64_t head = atomic_load_explicit(&segment->newest_head, memory_order_relaxed);
    struct newest_slot *slot = &slots[head & (capacity - 1)];
    uint64_t word[RECORD_WORDS];
    memcpy(word, record, sizeof word);
    atomic_store_explicit(&slot->state, 2 * head + 1, memory_order_relaxed);
    for (unsigned i = 0; i < RECORD_WORDS; i++)
        atomic_store_explicit(&slot->word[i], word[i], memory_order_release);
    atomic_store_explicit(&slot->state, 2 * (head + 1), memory_order_release);
    atomic_store_explicit(&segment->newest_head, head + 1, memory_order_release);
}

/* Copies the newest record at `position`. Returns 1, or 0 if another took its place. */
static inline int ring_read_newest(struct newest_slot *slots, uint32_t capacity, uint64_t position,
                                   struct record *record)
{
    struct newest_slot *slot = &slots[position & (capacity - 1)];
    uint64_t word[RECORD_WORDS];
    if (atomic_load_explicit(&slot->state, memory_order_acquire) != 2 * (position + 1))
        return 0;
    for (unsigned i = 0; i < RECORD_WORDS; i++)
        word[i] = atomic_load_explicit(&slot->word[i], memory_order_acquire);
    if (atomic_load_explicit(&slot->state, memory_order_relaxed) != 2 * (position + 1))
        return 0;
    memcpy(record, word, sizeof word);
    return 1;
}

/* How many control records may wait: what can be spared leaves a quarter of the ring to what can't.
 */
static inline uint64_t ring_control_limit(const struct ring_end *end, int can_be_spared)
{
    return can_be_spared ? end->capacity - end->capacity / 4 : end->capacity;
}

/* The member has issued collectives below `issued`. */
static inline void ring_member_issued(struct ring_member *member, uint64_t issued)
{
    uint64_t before = atomic_load_explicit(&member->issued, memory_order_relaxed);
    while (before < issued &&
           !atomic_compare_exchange_weak_explicit(&member->issued, &before, issued,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

#endif
