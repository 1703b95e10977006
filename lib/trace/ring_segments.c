/* ring_segments.c: finds the segments of a ring file and the parts of their rings, and checks what
 * the file claims of them before anything is read there. */
#include "lib/trace/ring_reader_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/array.h"

static const uint64_t file_bytes_max = UINT64_C(1) << 40;

/* Maps the file as far as something in it claims to reach. Returns what ring_reader_grow does. */
static int map_as_far_as(struct ring_reader *reader, uint64_t offset, uint64_t bytes,
                         uint64_t alignment, struct error *err)
{
    if (offset < reader->header_bytes || offset > file_bytes_max || bytes > file_bytes_max ||
        offset % alignment)
        return error_set(err, "ring file %s is damaged: %" PRIu64 " bytes at %" PRIu64,
                         reader->path, bytes, offset);
    return ring_reader_grow(reader, offset + bytes, err);
}

static int make_segment_room(struct ring_reader *reader, struct error *err)
{
    bool has_room =
        ARRAY_ADD(reader->segment, reader->segments) &&
        ARRAY_RESERVE(reader->heap, reader->heap_room, (reader->segments + 1) * SOURCES);
    return has_room ? 0 : error_memory(err, "can't read ring file %s", reader->path);
}

/* An earlier reader has stored what is before the tails. */
static int open_segment(struct ring_reader *reader, uint64_t offset, struct error *err)
{
    if (make_segment_room(reader, err) < 0)
        return -1;
    struct segment_reader *found = &reader->segment[reader->segments];
    *found = (struct segment_reader){.offset = offset};
    struct ring_segment *segment = ring_reader_segment(reader, reader->segments);
    for (int kind = 0; kind < RING_KINDS; kind++)
        found->ring[kind].position = found->ring[kind].head =
            atomic_load_explicit(&segment->ring[kind].tail, memory_order_relaxed);
    if (reader->newest_records)
        newest_begin(&found->newest, segment);
    reader->segments++;
    return 0;
}

static uint64_t offset_behind_last(const struct ring_reader *reader)
{
    const _Atomic uint64_t *next = reader->segments
                                       ? &ring_reader_segment(reader, reader->segments - 1)->next
                                       : &reader->file->first_segment;
    return atomic_load_explicit((_Atomic uint64_t *)next, memory_order_acquire);
}

/* Only a file that has grown is asked for its size: one that was cut off shows when it is read. */
int ring_reader_find_segments(struct ring_reader *reader, struct error *err)
{
    for (uint64_t offset; (offset = offset_behind_last(reader));) {
        /* The file grows at its end, so a chain that turns back is damaged. */
        if (reader->segments && offset <= reader->segment[reader->segments - 1].offset)
            return error_set(err, "ring file %s is damaged: its list of threads turns back",
                             reader->path);
        int reached = map_as_far_as(reader, offset, sizeof(struct ring_segment), RING_PAGE, err);
        if (reached <= 0)
            return reached;
        if (open_segment(reader, offset, err) < 0)
            return -1;
    }
    return 0;
}

/* Takes over a part that was announced. Returns 1, 0: it can't be mapped now, or -1 with err. */
static int open_part(struct ring_reader *reader, struct ring_cursor *cursor,
                     const struct ring_part *announced, struct error *err)
{
    struct ring_part part = *(const volatile struct ring_part *)announced;
    uint64_t from = cursor->parts ? cursor->chain[cursor->parts - 1].begin : 0;
    bool is_first = !cursor->parts;
    if (!part.records || part.records & (part.records - 1) || part.begin < from ||
        part.begin > cursor->head || (is_first && part.begin))
        return error_set(err,
                         "ring file %s is damaged: a ring of %u records begins at %" PRIu64
                         " and is written to %" PRIu64,
                         reader->path, part.records, part.begin, cursor->head);
    int reached = map_as_far_as(reader, part.offset, (uint64_t)part.records * RECORD_BYTES,
                                RECORD_BYTES, err);
    if (reached > 0)
        cursor->chain[cursor->parts++] = part;
    else if (reached == 0)
        cursor->head = part.begin;
    return reached;
}

/* No part can have more waiting than it has room for. */
static int check_room(const struct ring_reader *reader, struct ring_cursor *cursor, unsigned ring,
                      struct error *err)
{
    bool is_possible = cursor->parts > 0 || cursor->head == 0;
    uint64_t from = cursor->position;
    ring_reader_find_part(cursor);
    for (unsigned part = cursor->part; part < cursor->parts; part++) {
        uint64_t end = part + 1 < cursor->parts ? cursor->chain[part + 1].begin : cursor->head;
        if (end > cursor->head)
            end = cursor->head;
        is_possible &= from <= end && end - from <= cursor->chain[part].records;
        from = end;
    }
    if (is_possible)
        return 0;
    return error_set(err,
                     "ring file %s is damaged: ring %u was read to %" PRIu64
                     " and is written to %" PRIu64 " with room for %u records",
                     reader->path, ring, cursor->position, cursor->head,
                     cursor->parts ? cursor->chain[cursor->parts - 1].records : 0);
}

int ring_reader_look_at_ring(struct ring_reader *reader, unsigned index, int kind,
                             struct error *err)
{
    struct ring_cursor *cursor = &reader->segment[index].ring[kind];
    struct ring_segment *segment = ring_reader_segment(reader, index);
    cursor->head = atomic_load_explicit(&segment->ring[kind].head, memory_order_acquire);
    unsigned parts = atomic_load_explicit(&segment->parts[kind], memory_order_acquire);
    if (parts > RING_PARTS || parts < cursor->parts)
        return error_set(err, "ring file %s is damaged: ring %u has %u parts", reader->path,
                         index * RING_KINDS + (unsigned)kind, parts);
    int reached = 1;
    while (reached > 0 && cursor->parts < parts)
        /* The mapping moves as it grows. */
        reached = open_part(reader, cursor,
                            &ring_reader_segment(reader, index)->part[kind][cursor->parts], err);
    if (reached < 0)
        return -1;
    return check_room(reader, cursor, index * RING_KINDS + (unsigned)kind, err);
}

int ring_reader_find_newest(struct ring_reader *reader, unsigned index, struct error *err)
{
    struct segment_reader *found = &reader->segment[index];
    struct ring_segment *segment = ring_reader_segment(reader, index);
    if (found->newest_offset)
        return 1;
    if (!reader->newest_records ||
        !atomic_load_explicit(&segment->newest_head, memory_order_acquire))
        return 0;
    uint64_t offset = atomic_load_explicit(&segment->newest_offset, memory_order_acquire);
    uint32_t records = *(volatile uint32_t *)&segment->newest_records;
    if (!records || records & (records - 1))
        return error_set(err, "ring file %s is damaged: %u newest records of a thread",
                         reader->path, records);
    int reached =
        map_as_far_as(reader, offset, records * sizeof(struct newest_slot), sizeof(uint64_t), err);
    if (reached > 0) {
        found->newest_offset = offset;
        found->newest_records = records;
    }
    return reached;
}
