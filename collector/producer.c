/* producer.c: opens and closes the ring file of one watched process. */
#include "collector/producer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/trace/unseen.h"

static const uint64_t how_patience_ns =
    300000000; /* how long the kernel may take to say how a process ended */
static const uint64_t lost_interval_ns =
    100000000; /* how often a growing number of losses is reported */

/* The numbers in the database of what struct segment_position has: rings are counted over all
 * segments; the newest records of a segment have two numbers, behind those of any ring. */
enum { POSITIONS = RING_KINDS + 2, NEWEST_NUMBERS = 1 << 24 };

static unsigned position_number(unsigned segment, int which)
{
    return which < RING_KINDS ? segment * RING_KINDS + (unsigned)which
                              : NEWEST_NUMBERS + 2 * segment + (unsigned)(which - RING_KINDS);
}

static uint64_t *position_of(struct segment_position *position, int which)
{
    if (which < RING_KINDS)
        return &position->ring[which];
    return which == RING_KINDS ? &position->newest : &position->newest_missed;
}

/* Positions that an earlier collector stored, for segments seen for the first time. Returns 1 if
 * there were such segments, 0, or -1 with err. */
static int resume_rings(struct producer *producer, struct store *store, struct error *err)
{
    unsigned segments = ring_reader_segments(producer->reader);
    if (producer->segments == segments)
        return 0;
    if (!ARRAY_RESERVE(producer->stored, producer->stored_room, segments))
        return error_memory(err, "can't watch %s", producer->path);
    for (; producer->segments < segments; producer->segments++) {
        struct segment_position *stored = &producer->stored[producer->segments];
        for (int which = 0; which < POSITIONS; which++)
            if (store_position_get(store, producer->process,
                                   position_number(producer->segments, which),
                                   position_of(stored, which), err) < 0)
                return -1;
        ring_reader_seek(producer->reader, producer->segments, stored);
    }
    return 1;
}

static int read_ring_file(struct producer *producer, struct store *store, bool patient,
                          uint64_t now_ns, struct error *err)
{
    if (ring_reader_look(producer->reader, now_ns, patient, err) < 0)
        return -1;
    int resumed = resume_rings(producer, store, err);
    if (resumed > 0)
        return ring_reader_look(producer->reader, now_ns, patient, err);
    return resumed;
}

static struct record make_notice(enum api api, uint64_t now_ns)
{
    return (struct record){.time_ns = now_ns, .api = (uint16_t)api, .device = RECORD_NO_DEVICE};
}

static struct record make_progress(const struct progress_sample *sample)
{
    struct record record = make_notice(API_notice_progress, sample->time_ns);
    record.progress.slot = sample->slot;
    record.progress.idle_us = sample->idle_us;
    record.progress.started = sample->reached.started;
    record.progress.done = sample->reached.done;
    return record;
}

/* How many samples may go among the records taken: no record that is still to come is older. */
static int count_ready(const struct producer *producer, const struct record_batch *batch, int taken,
                       bool drained)
{
    int room = batch_room(batch), ready = 0;
    uint64_t until_ns = taken ? batch->record[batch->count - 1].time_ns : 0;
    while (ready < producer->samples && ready < room &&
           (drained || producer->sample[ready].time_ns <= until_ns))
        ready++;
    return ready;
}

/* Merges the samples by time with the batch's last records, `taken` of this process: what a stream
 * has reached comes behind the records of it, and before those of later calls. */
static void merge_progress(struct producer *producer, struct record_batch *batch, int taken,
                           bool drained)
{
    int ready = count_ready(producer, batch, taken, drained), left = ready;
    int to = batch->count + ready - 1, from = batch->count - 1;
    for (; left > 0; to--) {
        const struct progress_sample *sample = &producer->sample[left - 1];
        bool is_record = taken > 0 && batch->record[from].time_ns > sample->time_ns;
        batch->record[to] = is_record ? batch->record[from--] : make_progress(sample);
        taken -= is_record;
        left -= !is_record;
    }
    for (int i = 0; i < ready; i++) {
        batch->process[batch->count++] = producer->process;
        producer->slot[producer->sample[i].slot] = producer->sample[i].reached;
    }
    producer->samples -= ready;
    memmove(producer->sample, producer->sample + ready,
            (size_t)producer->samples * sizeof producer->sample[0]);
}

/* A hash goes behind the record of what was hashed. Returns false if some have to wait for room in
 * the batch. */
static bool feed_hashes(struct producer *producer, struct record_batch *batch, bool drained,
                        uint64_t now_ns)
{
    for (unsigned i = 0; i < ring_reader_hashes(producer->reader); i++) {
        const struct ring_hash *hash = ring_reader_hash(producer->reader, i);
        if (!drained && hash->serial > producer->highest_serial)
            continue;
        struct record record = make_notice(API_notice_hash, now_ns);
        record.hash.comm = hash->comm;
        record.hash.number = hash->number;
        record.hash.hash = hash->hash;
        record.hash.nans = hash->nans;
        record.hash.infs = hash->infs;
        record.hash.bytes = hash->bytes;
        record.hash.serial = hash->serial;
        record.hash.rank = hash->rank;
        record.hash.what = hash->what;
        record.hash.flags = (uint8_t)(hash->flags | (unsigned)hash->expects << HASH_EXPECTS);
        record.hash.api = hash->api;
        record.hash.name = hash->name;
        if (!batch_add(batch, producer->process, &record))
            return false;
        ring_reader_hash_reported(producer->reader, i);
    }
    return true;
}

static void feed_lost_counts(struct producer *producer, struct record_batch *batch, uint64_t now_ns,
                             bool last)
{
    uint64_t control = ring_reader_lost(producer->reader, RING_CONTROL),
             bulk = ring_reader_lost(producer->reader, RING_BULK);
    uint64_t hashes = ring_reader_hashes_lost(producer->reader);
    bool changed = control != producer->lost[RING_CONTROL] || bulk != producer->lost[RING_BULK] ||
                   hashes != producer->hashes_lost;
    if (!changed || (!last && now_ns - producer->lost_reported_ns < lost_interval_ns))
        return;
    struct record record = make_notice(API_notice_lost, now_ns);
    record.lost.control = control;
    record.lost.bulk = bulk;
    record.lost.hashes = hashes;
    if (!batch_add(batch, producer->process, &record))
        return;
    producer->lost[RING_CONTROL] = control;
    producer->lost[RING_BULK] = bulk;
    producer->hashes_lost = hashes;
    producer->lost_reported_ns = now_ns;
}

/* After losses the analyzer can't count the collectives of a member: the process did. All that it
 * recorded of them was taken. */
static void feed_issued(struct producer *producer, struct record_batch *batch, uint64_t now_ns)
{
    uint64_t lost = ring_reader_lost(producer->reader, RING_CONTROL);
    if (lost == producer->issued_lost)
        return;
    for (unsigned i = 0; i < ring_reader_members(producer->reader); i++) {
        struct ring_member_state member = ring_reader_member(producer->reader, i);
        struct record record = make_notice(API_notice_reached, now_ns);
        record.reached.comm = member.comm;
        record.reached.rank = member.rank;
        record.reached.issued = member.issued;
        record.reached.done = UINT64_MAX;
        if (!batch_add(batch, producer->process, &record))
            return;
    }
    producer->issued_lost = lost;
}

static void feed_end(struct producer *producer, struct record_batch *batch, uint64_t now_ns)
{
    const struct liveness *liveness = &producer->liveness;
    bool is_said = producer->said_exit || producer->said_abort;
    if (liveness->how == END_UNKNOWN && !is_said) {
        producer->gone_ns = producer->gone_ns ? producer->gone_ns : now_ns;
        /* Its parent may just have reported it: that is read before the next look. */
        uint64_t patience_ns = liveness->pidfd >= 0 ? how_patience_ns : 1;
        if (now_ns - producer->gone_ns < patience_ns)
            return;
    }
    struct record record = make_notice(API_notice_end, now_ns);
    record.end.how = liveness->how;
    record.end.value = liveness->value;
    record.end.oom = liveness->oom;
    if (liveness->how == END_UNKNOWN && producer->said_exit) {
        record.end.how = END_EXIT;
        record.end.value = producer->exit_value;
    }
    if (liveness->how == END_UNKNOWN && producer->said_abort) {
        record.end.how = END_SIGNAL;
        record.end.value = SIGABRT;
    }
    producer->end_reported = batch_add(batch, producer->process, &record);
}

static void note_standing(struct producer *producer, const struct record *record)
{
    if (record->standing.index + 1 >= record->standing.count)
        producer->asked = false;
    if (record->standing.flags & RECORD_THREAD_MAIN) {
        producer->main_stack = record->stack;
        producer->main_stack_is_address = record->flags & RECORD_FLAG_ADDRESS;
    }
}

/* What a record of this process says about calls in flight and the exit. */
static void note_record(struct producer *producer, const struct record *record)
{
    if (producer->highest_serial < record->serial)
        producer->highest_serial = record->serial;
    if (record->phase == RECORD_ENTER)
        producer->open_calls++;
    else if (record->phase == RECORD_LEAVE && producer->open_calls > 0)
        producer->open_calls--;
    if (record->api == API_notice_thread_stack)
        note_standing(producer, record);
    if (record->api == API_notice_exit && record->end.how == END_EXIT) {
        producer->said_exit = true;
        producer->exit_value = record->end.value;
    }
    producer->said_abort |= record->api == API_notice_exception &&
                            record->range.id == EXCEPTION_ABORT;
}

static int drain_rings(struct producer *producer, struct store *store, struct record_batch *batch,
                       int quota, bool ended, uint64_t now_ns, struct error *err)
{
    if (read_ring_file(producer, store, !ended, now_ns, err) < 0)
        return -1;
    int room = batch_room(batch), count = 0;
    int taken = ring_reader_take(producer->reader, batch->record + batch->count,
                                 quota < room ? quota : room, err);
    if (taken < 0)
        return -1;
    for (; count < taken; count++) {
        batch->process[batch->count] = producer->process;
        note_record(producer, &batch->record[batch->count++]);
    }
    return taken;
}

/* What the file held, and what the process does afterwards, is lost: how much is not known. */
static void feed_damaged(struct producer *producer, struct record_batch *batch, uint64_t now_ns)
{
    struct record blind = make_notice(API_notice_blind, now_ns);
    struct record lost = make_notice(API_notice_lost, now_ns);
    blind.range.id = UNSEEN_DAMAGED;
    lost.lost.control = producer->lost[RING_CONTROL] + 1;
    lost.lost.bulk = producer->lost[RING_BULK];
    lost.lost.hashes = producer->hashes_lost;
    producer->damage_reported = batch_room(batch) >= 2 &&
                                batch_add(batch, producer->process, &blind) &&
                                batch_add(batch, producer->process, &lost);
}

static void close_damaged(struct producer *producer)
{
    progress_watch_remove(producer->progress);
    producer->progress = NULL;
    producer->samples = 0;
    ring_reader_close(producer->reader);
    producer->reader = producer->liveness.reader = NULL;
}

/* Before the rings are looked at: what a stream has reached was issued in a record seen then. */
static void drain_progress(struct producer *producer, bool ended)
{
    producer->samples += progress_watch_take(producer->progress, ended,
                                             producer->sample + producer->samples,
                                             PROGRESS_SAMPLES - producer->samples);
}

int producer_pass(struct producer *producer, struct store *store, struct record_batch *batch,
                  int quota, uint64_t now_ns, struct error *err)
{
    /* Asked before the rings are looked at: what a process wrote before its end is seen then. */
    bool ended = liveness_ended(&producer->liveness);
    int taken = 0;
    bool drained = true, hashes_reported = true;
    if (producer->reader) {
        drain_progress(producer, ended);
        taken = drain_rings(producer, store, batch, quota, ended, now_ns, err);
        if (taken < 0) {
            close_damaged(producer);
            return -1;
        }
        drained = ring_reader_drained(producer->reader);
        merge_progress(producer, batch, taken, drained);
        hashes_reported = feed_hashes(producer, batch, drained, now_ns);
        feed_lost_counts(producer, batch, now_ns, ended && drained);
        if (drained)
            feed_issued(producer, batch, now_ns);
    }
    if (!producer->reader && !producer->damage_reported)
        feed_damaged(producer, batch, now_ns);
    if (ended && drained && hashes_reported && !producer->samples && !producer->end_reported)
        feed_end(producer, batch, now_ns);
    return taken;
}

int producer_store_positions(struct producer *producer, struct store *store, struct error *err)
{
    for (unsigned i = 0; producer->reader && i < producer->segments; i++) {
        struct segment_position now = ring_reader_position(producer->reader, i);
        for (int which = 0; which < POSITIONS; which++)
            if (*position_of(&now, which) != *position_of(&producer->stored[i], which) &&
                store_position_set(store, producer->process, position_number(i, which),
                                   *position_of(&now, which), err) < 0)
                return -1;
    }
    return 0;
}

void producer_forget_stored(struct producer *producer)
{
    for (unsigned i = 0; i < producer->segments; i++)
        for (int which = 0; which < POSITIONS; which++)
            *position_of(&producer->stored[i], which) = UINT64_MAX; /* no position is that far */
}

int producer_stored(struct producer *producer, struct error *err)
{
    if (!producer->reader)
        return 0;
    for (unsigned i = 0; i < producer->segments; i++)
        producer->stored[i] = ring_reader_position(producer->reader, i);
    if (ring_reader_publish(producer->reader, err) == 0)
        return 0;
    close_damaged(producer);
    return -1;
}

bool producer_waits(const struct producer *producer)
{
    if (producer->liveness.ended)
        return false;
    for (int i = 0; i < RING_SLOTS_MAX; i++)
        if (producer->slot[i].started != producer->slot[i].done)
            return true;
    return producer->open_calls > 0;
}

bool producer_polled(struct producer *producer)
{
    uint32_t before = producer->child_polls;
    if (producer->reader)
        producer->child_polls = ring_reader_child_polls(producer->reader);
    return producer->child_polls != before;
}

void producer_free(struct producer *producer)
{
    if (!producer)
        return;
    progress_watch_remove(producer->progress);
    ring_reader_close(producer->reader);
    liveness_close(&producer->liveness);
    run_delay_free(&producer->run_delay);
    free(producer->stored);
    free(producer->path);
    free(producer);
}

uint64_t producer_steps(const struct producer *producer)
{
    struct ring_progress slot[RING_SLOTS_MAX];
    if (!producer->reader)
        return 0;
    uint64_t steps = ring_reader_serial(producer->reader);
    int slots = ring_reader_progress(producer->reader, slot);
    for (int i = 0; i < slots; i++)
        steps += slot[i].started + slot[i].done;
    return steps;
}
