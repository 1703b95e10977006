/* segments.c: the segments of this process's threads, and the parts of their rings. */
#include "interpose/ring/segments.h"

#include <stddef.h>
#include <sys/mman.h>

#include "interpose/ring/files.h"
#include "interpose/shim/forget.h"
#include "interpose/shim/shim.h"

enum { WRITERS = 64 }; /* mapped at once */

static struct {
    _Atomic(struct ring_writer *) first;
    struct ring_writer *last; /* this and what follows: with the file's lock held */
    struct ring_writer *spare;
    uint32_t spares;
    _Atomic uint32_t ended;
} segments;

static const uint32_t first_records[RING_KINDS] = {RING_RECORDS_FIRST, RING_RECORDS_FIRST};

static uint64_t first_bytes(void)
{
    return ring_segment_bytes(RING_RECORDS_FIRST, RING_RECORDS_FIRST, RING_NEWEST_FIRST);
}

/* Zeroed memory for one, which is never freed: other threads walk the list. */
static struct ring_writer *new_writer(void)
{
    if (!segments.spares) {
        void *memory = mmap(NULL, WRITERS * sizeof *segments.spare, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return NULL;
        segments.spare = memory;
        segments.spares = WRITERS;
    }
    segments.spares--;
    return segments.spare++;
}

static void begin_writer(struct ring_writer *writer, struct ring_segment *segment, uint64_t offset)
{
    ring_segment_begin(segment, offset, first_records, RING_NEWEST_FIRST);
    writer->segment = segment;
    for (int kind = 0; kind < RING_KINDS; kind++) {
        writer->end[kind] =
            ring_end_of(&segment->ring[kind], ring_records(segment, kind), first_records[kind]);
        writer->parts[kind] = 1;
    }
    writer->newest = ring_newest(segment);
    writer->newest_records = RING_NEWEST_FIRST;
}

static struct ring_writer *add_segment(uint32_t thread)
{
    uint64_t offset;
    if (!files_lock())
        return NULL;
    struct ring_writer *before = segments.last, *writer = new_writer();
    struct ring_segment *segment =
        writer ? files_extend(first_bytes(), before ? FILES_THREAD : FILES_FIRST, &offset) : NULL;
    if (segment) {
        begin_writer(writer, segment, offset);
        atomic_store_explicit(&segment->thread, thread, memory_order_relaxed);
        atomic_store_explicit(&segment->state, SEGMENT_ACTIVE, memory_order_relaxed);
        atomic_store_explicit(&writer->thread, thread, memory_order_relaxed);
        atomic_store_explicit(before ? &before->segment->next : &shim.file->first_segment, offset,
                              memory_order_release);
        if (before)
            atomic_store_explicit(&before->next, writer, memory_order_release);
        else
            atomic_store_explicit(&segments.first, writer, memory_order_release);
        segments.last = writer;
    }
    files_unlock();
    return segment ? writer : NULL;
}

static struct ring_writer *first_writer(void)
{
    return atomic_load_explicit(&segments.first, memory_order_acquire);
}

static struct ring_writer *next_writer(const struct ring_writer *writer)
{
    return atomic_load_explicit(&writer->next, memory_order_acquire);
}

struct ring_writer *segments_take(uint32_t thread)
{
    for (struct ring_writer *at = first_writer(); at; at = next_writer(at)) {
        uint32_t nobody = 0;
        if (!atomic_compare_exchange_strong_explicit(&at->thread, &nobody, thread,
                                                     memory_order_acq_rel, memory_order_relaxed))
            continue;
        atomic_store_explicit(&at->segment->thread, thread, memory_order_relaxed);
        atomic_store_explicit(&at->segment->state, SEGMENT_ACTIVE, memory_order_release);
        return at;
    }
    return add_segment(thread);
}

void segments_end(struct ring_writer *writer)
{
    atomic_store_explicit(&writer->segment->state, SEGMENT_ENDED, memory_order_release);
    atomic_store_explicit(&writer->thread, 0, memory_order_release);
    atomic_fetch_add_explicit(&segments.ended, 1, memory_order_release);
}

uint32_t segments_ended(void)
{
    return atomic_load_explicit(&segments.ended, memory_order_acquire);
}

bool segments_has_thread(uint32_t thread)
{
    struct ring_writer *at = first_writer();
    while (at && atomic_load(&at->thread) != thread)
        at = next_writer(at);
    return at != NULL;
}

/* More of the file, for a ring of a thread. */
static void *extend(uint64_t bytes, uint64_t *offset)
{
    if (!files_lock())
        return NULL;
    void *memory = files_extend(bytes, FILES_GROWTH, offset);
    files_unlock();
    return memory;
}

static bool add_part(struct ring_writer *writer, int kind)
{
    struct ring_end *end = &writer->end[kind];
    struct ring_segment *segment = writer->segment;
    uint32_t part = writer->parts[kind], records = end->capacity * RING_GROWTH;
    uint64_t offset;
    if (records > RING_RECORDS_MAX)
        records = RING_RECORDS_MAX;
    if (part == RING_PARTS || end->capacity == RING_RECORDS_MAX)
        return false;
    void *memory = extend((uint64_t)records * RECORD_BYTES, &offset);
    if (!memory)
        return false;
    segment->part[kind][part] =
        (struct ring_part){.begin = end->head, .offset = offset, .records = records};
    atomic_store_explicit(&segment->parts[kind], part + 1, memory_order_release);
    if (part > 1) /* the first one is in the segment's mapping */
        munmap(end->records, (size_t)end->capacity * RECORD_BYTES);
    writer->parts[kind] = part + 1;
    end->records = memory;
    end->capacity = records;
    end->tail = end->head;
    return true;
}

bool segments_grow(struct ring_writer *writer, int kind)
{
    uint64_t tail = 1 + writer->end[kind].tail;
    if (writer->refused[kind] == tail)
        return false;
    if (add_part(writer, kind))
        return true;
    writer->refused[kind] = tail;
    return false;
}

uint32_t segments_make_room(struct ring_writer *writer, int kind, size_t records)
{
    while (writer->end[kind].capacity < records && segments_grow(writer, kind)) {}
    return writer->end[kind].capacity;
}

static uint64_t newest_bytes(uint32_t records)
{
    return ring_pages(records * sizeof(struct newest_slot));
}

/* Before the first of them is written they may still lie elsewhere. */
static void choose_newest(struct ring_writer *writer)
{
    struct ring_segment *segment = writer->segment;
    void *memory = NULL;
    uint64_t offset;
    uint32_t records = RING_NEWEST_RECORDS;
    while (records > RING_NEWEST_FIRST && !(memory = extend(newest_bytes(records), &offset)))
        records /= 2;
    writer->newest_chosen = true;
    if (!memory)
        return;
    writer->newest = memory;
    writer->newest_records = records;
    segment->newest_records = records;
    atomic_store_explicit(&segment->newest_offset, offset, memory_order_release);
}

void segments_append_newest(struct ring_writer *writer, const struct record *record)
{
    if (!writer->newest_chosen)
        choose_newest(writer);
    ring_append_newest(writer->segment, writer->newest, writer->newest_records, record);
}

/* The addresses stay, since another of the parent's calls may be using them further up this stack,
 * but the file does not count as in use by this process. */
static void unshare_writer(struct ring_writer *writer)
{
    files_unshare(writer->segment, first_bytes());
    for (int kind = 0; kind < RING_KINDS; kind++)
        if (writer->parts[kind] > 1)
            files_unshare(writer->end[kind].records,
                          (uint64_t)writer->end[kind].capacity * RECORD_BYTES);
    if (writer->newest_records > RING_NEWEST_FIRST)
        files_unshare(writer->newest, newest_bytes(writer->newest_records));
}

void segments_forked(void)
{
    for (struct ring_writer *at = first_writer(); at; at = next_writer(at))
        unshare_writer(at);
    forget_state(&segments, sizeof segments);
}
