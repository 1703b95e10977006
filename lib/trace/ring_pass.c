/* ring_pass.c: one pass over a ring file: sees how far its writer has got, and takes the records in
 * the order of their serials. */
#include "lib/trace/ring_reader_internal.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/fault_guard.h"
#include "lib/base/invariant.h"

static const uint64_t patience_ns = 20000000; /* how long a missing serial is waited for */
static const uint64_t hashes_interval_ns =
    50000000; /* how often all hash entries are looked at, whatever is known */

static struct newest_slot *newest_of(const struct ring_reader *reader, unsigned segment)
{
    return (struct newest_slot *)((char *)reader->file + reader->segment[segment].newest_offset);
}

static const struct record *next_of(const struct ring_reader *reader, unsigned source)
{
    const struct segment_reader *segment = &reader->segment[source / SOURCES];
    if (source % SOURCES == SOURCE_NEWEST)
        return newest_next(&segment->newest, segment->newest_records);
    return ring_reader_record(reader, &segment->ring[source % SOURCES]);
}

static uint64_t serial_of(const struct ring_reader *reader, unsigned source)
{
    return next_of(reader, source)->serial;
}

/* Moves heap[at] down to its place. */
static void sift(struct ring_reader *reader, unsigned at)
{
    for (;;) {
        unsigned least = at;
        for (unsigned child = 2 * at + 1; child <= 2 * at + 2 && child < reader->heap_size; child++)
            if (serial_of(reader, reader->heap[child]) < serial_of(reader, reader->heap[least]))
                least = child;
        if (least == at)
            return;
        unsigned ring = reader->heap[at];
        reader->heap[at] = reader->heap[least];
        reader->heap[least] = ring;
        at = least;
    }
}

/* Nothing was asked for since the last look and all was given back. A ticket is drawn a moment
 * before its entry is taken, so that holds only for a while. */
static bool no_hash_is_new(const struct ring_reader *reader, uint64_t tickets)
{
    return tickets == reader->hashes.tickets && !reader->hashes.pending && reader->patient &&
           reader->now_ns - reader->hashes.seen_ns < hashes_interval_ns;
}

/* Before the heads: the record of what was hashed is seen by this look. */
static void look_at_hashes(struct ring_reader *reader)
{
    struct hash_entry *entries = ring_reader_entries(reader);
    uint64_t tickets = atomic_load_explicit(&reader->file->hash_tickets, memory_order_relaxed);
    reader->hashes.count = 0;
    if (!reader->hashes.entries || no_hash_is_new(reader, tickets))
        return;
    reader->hashes.tickets = tickets;
    reader->hashes.seen_ns = reader->now_ns;
    reader->hashes.pending = false;
    for (unsigned i = 0; i < reader->hashes.entries; i++) {
        struct hash_entry *entry = &entries[i];
        uint64_t ticket = atomic_load_explicit(&entry->taken, memory_order_acquire);
        if (!ticket)
            continue;
        reader->hashes.pending = true;
        if (ticket == reader->hashes.reported[i] ||
            atomic_load_explicit(&entry->found.done, memory_order_acquire) != ticket)
            continue;
        invariant(reader->hashes.count <= i,
                  "each entry of the hashes is given out once in a look");
        reader->hashes.hash[reader->hashes.count++] = (struct ring_hash){
            .comm = entry->comm,
            .number = entry->number,
            .bytes = entry->bytes,
            .serial = entry->serial,
            .name = entry->name,
            .hash = entry->found.hash,
            .nans = entry->found.nans,
            .infs = entry->found.infs,
            .flags = entry->found.flags,
            .what = entry->what,
            .expects = entry->expects,
            .api = entry->api,
            .rank = entry->rank,
            .entry = i,
            .ticket = ticket,
        };
    }
    reader->hashes.lost = atomic_load_explicit(&reader->file->hash_lost, memory_order_relaxed);
}

/* Before the heads as well: what a member has issued is in a ring seen by this look, or lost. */
static void look_at_members(struct ring_reader *reader)
{
    unsigned given = atomic_load_explicit(&reader->file->member_next, memory_order_acquire);
    struct ring_member *members = ring_members(reader->file, reader->hashes.entries);
    reader->members = 0;
    if (!reader->members_max)
        return;
    for (unsigned i = 0; i < given && i < reader->members_max; i++)
        if (atomic_load_explicit(&members[i].ready, memory_order_acquire))
            reader->member[reader->members++] = (struct ring_member_state){
                .comm = members[i].comm,
                .rank = members[i].rank,
                .issued = atomic_load_explicit(&members[i].issued, memory_order_acquire),
            };
}

static int look_at_newest(struct ring_reader *reader, unsigned index, struct error *err)
{
    struct segment_reader *segment = &reader->segment[index];
    int known = ring_reader_find_newest(reader, index, err);
    if (known < 0)
        return -1;
    int waits = known ? newest_look(&segment->newest, ring_reader_segment(reader, index),
                                    newest_of(reader, index), segment->newest_records)
                      : 0;
    if (waits < 0)
        return error_set(err,
                         waits == -1 ? "ring file %s is damaged: the newest records of a "
                                       "thread were read further than they are written"
                                     : "can't read ring file %s: " OUT_OF_MEMORY,
                         reader->path);
    reader->lost[RING_CONTROL] += segment->newest.missed;
    if (waits)
        reader->heap[reader->heap_size++] = index * SOURCES + SOURCE_NEWEST;
    return 0;
}

static int look_at_segment(struct ring_reader *reader, unsigned index, struct error *err)
{
    for (int kind = 0; kind < RING_KINDS; kind++) {
        if (ring_reader_look_at_ring(reader, index, kind, err) < 0)
            return -1;
        reader->lost[kind] += atomic_load_explicit(
            &ring_reader_segment(reader, index)->ring[kind].lost, memory_order_relaxed);
        const struct ring_cursor *cursor = &reader->segment[index].ring[kind];
        if (cursor->head != cursor->position)
            reader->heap[reader->heap_size++] = index * SOURCES + (unsigned)kind;
    }
    return look_at_newest(reader, index, err);
}

static int look_at_rings(struct ring_reader *reader, struct error *err)
{
    reader->lost[RING_CONTROL] =
        atomic_load_explicit(&reader->file->lost_threads, memory_order_relaxed);
    reader->lost[RING_BULK] = 0;
    reader->heap_size = 0;
    for (unsigned index = 0; index < reader->segments; index++)
        if (look_at_segment(reader, index, err) < 0)
            return -1;
    for (unsigned at = reader->heap_size / 2; at-- > 0;)
        sift(reader, at);
    return 0;
}

static int look(struct ring_reader *reader, struct error *err)
{
    if (ring_reader_find_segments(reader, err) < 0)
        return -1;
    look_at_hashes(reader);
    look_at_members(reader);
    return look_at_rings(reader, err);
}

int ring_reader_look(struct ring_reader *reader, uint64_t now_ns, bool patient, struct error *err)
{
    reader->now_ns = now_ns;
    reader->patient = patient;
    reader->held_back = false;
    reader->heap_size = 0;
    return ring_reader_guard(reader, look, err);
}

/* Whether to wait for a record that comes before `serial` and was not seen yet. */
static bool hold_back(struct ring_reader *reader, uint64_t serial)
{
    if (!reader->began) {
        reader->began = true;
        reader->highest = reader->taken = reader->resumed ? serial - 1 : 0;
    }
    if (serial <= reader->highest + 1)
        return false;
    uint64_t missing = serial - 1 - reader->taken;
    uint64_t lost = reader->lost[RING_CONTROL] + reader->lost[RING_BULK] + reader->excused;
    if (missing <= lost || serial - 1 < reader->taken)
        return false;
    if (reader->waiting_for != serial) {
        reader->waiting_for = serial;
        reader->waiting_since = reader->now_ns;
    }
    if (reader->patient && reader->now_ns - reader->waiting_since < patience_ns)
        return true;
    reader->excused += missing - lost;
    return false;
}

struct taking {
    struct ring_reader *reader;
    struct record *records;
    int max, count;
    struct error *err;
};

/* The first source's next record was taken. */
static void pass_taken(struct ring_reader *reader)
{
    invariant(reader->heap_size, "a record that is taken comes from a ring that had one");
    unsigned source = reader->heap[0];
    struct segment_reader *segment = &reader->segment[source / SOURCES];
    bool more;
    if (source % SOURCES == SOURCE_NEWEST)
        more = newest_advance(&segment->newest, segment->newest_records);
    else {
        struct ring_cursor *cursor = &segment->ring[source % SOURCES];
        more = ++cursor->position != cursor->head;
        ring_reader_find_part(cursor);
    }
    if (!more)
        reader->heap[0] = reader->heap[--reader->heap_size];
    sift(reader, 0);
}

static int report_noise(const struct ring_reader *reader, unsigned source, struct error *err)
{
    const struct segment_reader *segment = &reader->segment[source / SOURCES];
    bool is_newest = source % SOURCES == SOURCE_NEWEST;
    return error_set(err,
                     "ring file %s is damaged: noise in the %s records of thread %u at position "
                     "%" PRIu64,
                     reader->path, is_newest ? "newest" : "waiting", source / SOURCES,
                     is_newest ? segment->newest.position
                               : segment->ring[source % SOURCES].position);
}

static int take_records(void *context)
{
    struct taking *taking = context;
    struct ring_reader *reader = taking->reader;
    while (taking->count < taking->max && reader->heap_size > 0) {
        unsigned source = reader->heap[0];
        struct record *record = &taking->records[taking->count];
        *record = *next_of(reader, source);
        if (record->serial == 0 || record->api == API_NONE || record->api >= API_COUNT ||
            record->phase > RECORD_LEAVE)
            return report_noise(reader, source, taking->err);
        if (hold_back(reader, record->serial)) {
            reader->held_back = true;
            return 0;
        }
        reader->taken++;
        if (record->serial > reader->highest)
            reader->highest = record->serial;
        taking->count++;
        pass_taken(reader);
    }
    return 0;
}

int ring_reader_take(struct ring_reader *reader, struct record *records, int max, struct error *err)
{
    struct taking taking = {reader, records, max, 0, err};
    int result = fault_guard_run(take_records, &taking);
    if (result == FAULT_GUARD_CUT)
        result = ring_reader_report_cut(reader, err);
    return taking.count > 0 ? taking.count : result;
}
