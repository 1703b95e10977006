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

const char *ring_reader_path(const struct ring_reader *reader)
{
    return reader->path;
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

unsigned ring_reader_rings(const struct ring_reader *reader)
{
    return reader->rings;
}

uint64_t ring_reader_position(const struct ring_reader *reader, unsigned ring)
{
    return reader->cursor[ring].position;
}

void ring_reader_seek(struct ring_reader *reader, unsigned ring, uint64_t position)
{
    struct ring_cursor *cursor = &reader->cursor[ring];
    if (position > 0)
        reader->resumed = true;
    if (position > cursor->position)
        cursor->position = cursor->head = position;
}

unsigned ring_reader_newest_segments(const struct ring_reader *reader)
{
    return reader->newest_records ? reader->rings / RING_KINDS : 0;
}

struct newest_position ring_reader_newest_position(const struct ring_reader *reader,
                                                   unsigned segment)
{
    const struct newest_reader *newest = &reader->newest[segment];
    return (struct newest_position){newest->position, newest->missed};
}

/* What was found overwritten by the first look is found again by the next. */
void ring_reader_newest_seek(struct ring_reader *reader, unsigned segment,
                             struct newest_position stored)
{
    struct newest_reader *newest = &reader->newest[segment];
    if (stored.position == 0)
        return;
    reader->resumed = true;
    newest->position = newest->copied = stored.position;
    newest->missed = stored.missed;
}

unsigned ring_reader_members(const struct ring_reader *reader)
{
    return reader->members;
}

struct ring_member_state ring_reader_member(const struct ring_reader *reader, unsigned index)
{
    return reader->member[index];
}

static void publish_newest(struct ring_reader *reader)
{
    for (unsigned i = 0; i < ring_reader_newest_segments(reader); i++) {
        struct ring_segment *segment = ring_reader_segment(reader, i * RING_KINDS);
        const struct newest_reader *newest = &reader->newest[i];
        atomic_store_explicit(&segment->newest_tail, newest->position, memory_order_relaxed);
        atomic_store_explicit(&segment->newest_missed, newest->missed, memory_order_relaxed);
    }
}

static void publish_hashes(struct ring_reader *reader)
{
    struct hash_entry *entries = ring_reader_entries(reader);
    for (unsigned i = 0; i < reader->hash_entries; i++) {
        uint64_t reported = reader->hash_reported[i];
        if (reported)
            atomic_compare_exchange_strong_explicit(&entries[i].taken, &reported, 0,
                                                    memory_order_release, memory_order_relaxed);
        reader->hash_reported[i] = 0;
    }
}

static int publish(struct ring_reader *reader, struct error *err)
{
    (void)err;
    publish_hashes(reader);
    publish_newest(reader);
    for (unsigned ring = 0; ring < reader->rings; ring++)
        atomic_store_explicit(&ring_reader_segment(reader, ring)->ring[ring % RING_KINDS].tail,
                              reader->cursor[ring].position, memory_order_release);
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
    return reader->hashes;
}

const struct ring_hash *ring_reader_hash(const struct ring_reader *reader, unsigned index)
{
    return &reader->hash[index];
}

void ring_reader_hash_reported(struct ring_reader *reader, unsigned index)
{
    reader->hash_reported[reader->hash[index].entry] = reader->hash[index].ticket;
}

uint64_t ring_reader_hashes_lost(const struct ring_reader *reader)
{
    return reader->hashes_lost;
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
