/* ring_reader.c: what is known of a ring file beside its records, and gives back what was taken. */
#include "lib/trace/ring_reader_internal.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/fault_guard.h"

struct guarded_action {
    struct ring_reader *reader;
    int (*action)(struct ring_reader *, struct error *);
    struct error *err;
};

static int run_guarded(void *context)
{
    struct guarded_action *guarded = context;
    return guarded->action(guarded->reader, guarded->err);
}

int ring_reader_report_cut(const struct ring_reader *reader, struct error *err)
{
    return error_set(err, "ring file %s was cut off while it was read", reader->path);
}

int ring_reader_guard(struct ring_reader *reader,
                      int (*action)(struct ring_reader *, struct error *), struct error *err)
{
    struct guarded_action guarded = {reader, action, err};
    int result = fault_guard_run(run_guarded, &guarded);
    return result == FAULT_GUARD_CUT ? ring_reader_report_cut(reader, err) : result;
}

const struct process_info *ring_reader_process(const struct ring_reader *reader)
{
    return &reader->process;
}

bool ring_reader_words_missing(const struct ring_reader *reader)
{
    return reader->words && !reader->shared;
}

void ring_reader_remove(const struct ring_reader *reader)
{
    unlink(reader->path);
    if (reader->words)
        unlink(reader->words);
}

uint64_t ring_reader_pid_namespace(const struct ring_reader *reader)
{
    return reader->pid_namespace;
}

bool ring_reader_locked(const struct ring_reader *reader)
{
    return reader->locked;
}

int ring_reader_descriptor(const struct ring_reader *reader)
{
    return reader->fd;
}

void ring_reader_release_descriptor(struct ring_reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
    reader->fd = -1;
}

bool ring_reader_drained(const struct ring_reader *reader)
{
    return reader->heap_size == 0;
}

unsigned ring_reader_segments(const struct ring_reader *reader)
{
    return reader->segments;
}

struct segment_position ring_reader_position(const struct ring_reader *reader, unsigned index)
{
    const struct segment_reader *segment = &reader->segment[index];
    return (struct segment_position){
        .ring = {segment->ring[RING_CONTROL].position, segment->ring[RING_BULK].position},
        .newest = segment->newest.position,
        .newest_missed = segment->newest.missed};
}

/* What was found overwritten by the first look is found again by the next. */
void ring_reader_seek(struct ring_reader *reader, unsigned index,
                      const struct segment_position *stored)
{
    struct segment_reader *segment = &reader->segment[index];
    for (int kind = 0; kind < RING_KINDS; kind++) {
        struct ring_cursor *cursor = &segment->ring[kind];
        if (stored->ring[kind] > 0)
            reader->resumed = true;
        if (stored->ring[kind] > cursor->position)
            cursor->position = cursor->head = stored->ring[kind];
    }
    if (stored->newest == 0)
        return;
    reader->resumed = true;
    segment->newest.position = segment->newest.copied = stored->newest;
    segment->newest.missed = stored->newest_missed;
}

unsigned ring_reader_members(const struct ring_reader *reader)
{
    return reader->members;
}

struct ring_member_state ring_reader_member(const struct ring_reader *reader, unsigned index)
{
    return reader->member[index];
}

static void publish_hashes(struct ring_reader *reader)
{
    struct hash_entry *entries = ring_reader_entries(reader);
    for (unsigned i = 0; i < reader->hashes.entries; i++) {
        uint64_t reported = reader->hashes.reported[i];
        if (reported)
            atomic_compare_exchange_strong_explicit(&entries[i].taken, &reported, 0,
                                                    memory_order_release, memory_order_relaxed);
        reader->hashes.reported[i] = 0;
    }
}

static int publish(struct ring_reader *reader, struct error *err)
{
    (void)err;
    publish_hashes(reader);
    for (unsigned i = 0; i < reader->segments; i++) {
        const struct segment_reader *from = &reader->segment[i];
        struct ring_segment *segment = ring_reader_segment(reader, i);
        atomic_store_explicit(&segment->newest_tail, from->newest.position, memory_order_relaxed);
        atomic_store_explicit(&segment->newest_missed, from->newest.missed, memory_order_relaxed);
        for (int kind = 0; kind < RING_KINDS; kind++)
            atomic_store_explicit(&segment->ring[kind].tail, from->ring[kind].position,
                                  memory_order_release);
    }
    return 0;
}

int ring_reader_publish(struct ring_reader *reader, struct error *err)
{
    return ring_reader_guard(reader, publish, err);
}

uint64_t ring_reader_lost(const struct ring_reader *reader, int kind)
{
    return reader->lost[kind];
}

struct progress_reading {
    const struct ring_file *header;
    struct ring_progress *slot;
};

static int read_slot_words(void *context)
{
    const struct progress_reading *reading = context;
    const struct ring_file *header = reading->header;
    unsigned slots = atomic_load_explicit((_Atomic uint32_t *)&header->slots, memory_order_acquire);
    if (slots > RING_SLOTS_MAX)
        slots = RING_SLOTS_MAX;
    for (unsigned i = 0; i < slots; i++) {
        struct progress_slot *slot = (struct progress_slot *)&header->slot[i];
        reading->slot[i].done = atomic_load_explicit(&slot->done, memory_order_acquire);
        reading->slot[i].started = atomic_load_explicit(&slot->started, memory_order_acquire);
    }
    return (int)slots;
}

int ring_reader_progress(const struct ring_reader *reader, struct ring_progress *slot)
{
    struct progress_reading reading = {reader->header, slot};
    return fault_guard_run(read_slot_words, &reading);
}

struct serial_reading {
    const struct ring_file *header;
    uint64_t serial;
};

static int read_last_serial(void *context)
{
    struct serial_reading *reading = context;
    reading->serial =
        atomic_load_explicit((_Atomic uint64_t *)&reading->header->serial, memory_order_relaxed);
    return 0;
}

uint64_t ring_reader_serial(const struct ring_reader *reader)
{
    struct serial_reading reading = {.header = reader->header};
    return fault_guard_run(read_last_serial, &reading) < 0 ? 0 : reading.serial;
}

unsigned ring_reader_hashes(const struct ring_reader *reader)
{
    return reader->hashes.count;
}

const struct ring_hash *ring_reader_hash(const struct ring_reader *reader, unsigned index)
{
    return &reader->hashes.hash[index];
}

void ring_reader_hash_reported(struct ring_reader *reader, unsigned index)
{
    reader->hashes.reported[reader->hashes.hash[index].entry] = reader->hashes.hash[index].ticket;
}

uint64_t ring_reader_hashes_lost(const struct ring_reader *reader)
{
    return reader->hashes.lost;
}

uint32_t ring_reader_child_polls(const struct ring_reader *reader)
{
    return atomic_load(&reader->file->child_polls);
}

void ring_reader_leave(struct ring_reader *reader, bool leaves)
{
    if (reader)
        atomic_store(&reader->file->collector_left, leaves);
}

/* The futex is shared: the waiter is another process. */
static int ask(struct ring_reader *reader, struct error *err)
{
    (void)err;
    atomic_fetch_add(&reader->file->stacks_wanted, 1);
    syscall(SYS_futex, &reader->file->stacks_wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return 0;
}

void ring_reader_ask(struct ring_reader *reader)
{
    ring_reader_guard(reader, ask, NULL); /* a file that was cut off shows at the next look */
}
