#include "analyzer/progress.h"

#include <stdlib.h>

#include "analyzer/channel.h"
#include "analyzer/window.h"

enum {
    QUEUE_LONG = 4096,          /* from here on operations that nobody can be waiting in are let go */
    QUEUE_MAX = 65536           /* the oldest go; nothing in CUDA queues as many */
};

static struct slot_state *slot_find(struct process *process, uint64_t key)
{
    struct slot_state *slot;
    TABLE_FIND(process->slots, &key, slot);
    return slot;
}

static struct slot_state *slot_get(struct process *process, uint64_t key)
{
    struct slot_state *slot = slot_find(process, key);
    if (slot)
        return slot;
    slot = calloc(1, sizeof *slot);
    if (!slot)
        return NULL;
    slot->key = key;
    TABLE_ADD(process->slots, key, slot);
    if (!TABLE_ADDED(slot)) {
        free(slot);
        return NULL;
    }
    return slot;
}

static struct pending *queue_at(struct slot_state *slot, uint32_t index)
{
    return &slot->queue[(slot->head + index) & (slot->capacity - 1)];
}

static void queue_pop(struct slot_state *slot)
{
    slot->head = (slot->head + 1) & (slot->capacity - 1);
    slot->count--;
    if (slot->counted_started)
        slot->counted_started--;
}

static void count_started(const struct pending *pending)
{
    if (!pending->channel && pending->member->started <= pending->number)
        pending->member->started = pending->number + 1;
}

static void count_done(const struct pending *pending)
{
    count_started(pending);
    if (!pending->channel && pending->member->done <= pending->number)
        pending->member->done = pending->number + 1;
}

/* Pops what is done, counts what has started. */
static void slot_settle(struct slot_state *slot)
{
    while (slot->count && queue_at(slot, 0)->launch <= slot->done) {
        count_done(queue_at(slot, 0));
        queue_pop(slot);
    }
    while (slot->counted_started < slot->count && queue_at(slot, slot->counted_started)->launch <= slot->started)
        count_started(queue_at(slot, slot->counted_started++));
}

static bool nobody_waits_in(const struct pending *pending)
{
    if (pending->channel)
        return !channel_is_waiting(pending->channel, pending->receives, pending->number);
    return pending->number < window_base(pending->member->comm);
}

static int queue_grow(struct slot_state *slot)
{
    uint32_t capacity = slot->capacity ? 2 * slot->capacity : 8;
    struct pending *queue = malloc(capacity * sizeof *queue);
    if (!queue)
        return -1;
    for (uint32_t i = 0; i < slot->count; i++)
        queue[i] = *queue_at(slot, i);
    free(slot->queue);
    slot->queue = queue;
    slot->capacity = capacity;
    slot->head = 0;
    return 0;
}

static int queue_push(struct slot_state *slot, const struct pending *pending)
{
    if (slot->count >= QUEUE_LONG)
        while (slot->count && nobody_waits_in(queue_at(slot, 0)))
            queue_pop(slot);
    if (slot->count == QUEUE_MAX)
        queue_pop(slot);
    if (slot->count == slot->capacity && queue_grow(slot))
        return -1;
    slot->count++;
    *queue_at(slot, slot->count - 1) = *pending;
    return 0;
}

static struct slot_state *slot_of(struct process *process, struct stream_state *stream, const struct record *record,
                                  uint64_t *launch)
{
    *launch = record->op.launch;
    if (record->op.slot != RECORD_NO_SLOT)
        return slot_get(process, record->op.slot);
    if (!stream->virtual_slot)
        stream->virtual_slot = SLOT_VIRTUAL | ++process->virtual_slots;
    struct slot_state *slot = slot_get(process, stream->virtual_slot);
    if (slot)
        *launch = ++slot->next_launch;
    return slot;
}

int progress_issue(struct process *process, struct stream_state *stream, struct operation *operation,
                   struct channel *channel, struct clock *launch_clock)
{
    struct pending pending = {
        .number = operation->record.op.number, .member = operation->member, .channel = channel,
        .signature = operation->signature, .site = operation->site,
        .receives = operation->record.api == API_ncclRecv,
    };
    struct slot_state *slot = slot_of(process, stream, &operation->record, &pending.launch);
    if (!slot)
        return -1;
    operation->place = (struct clock_entry){slot->key, pending.launch};
    if (clock_raise(&stream->ahead, slot->key, pending.launch))
        return -1;
    if (pending.launch <= slot->done) {     /* progress was read after the record was written */
        count_done(&pending);
        return 0;
    }
    if (launch_clock && clock_raise(launch_clock, slot->key, pending.launch))
        return -1;
    if (queue_push(slot, &pending))
        return -1;
    slot_settle(slot);
    return 0;
}

int progress_feed(struct process *process, const struct record *record)
{
    if (record->progress.slot == RECORD_NO_SLOT)
        return ENGINE_SKIPPED;
    struct slot_state *slot = slot_get(process, record->progress.slot);
    if (!slot)
        return ENGINE_FAILED;
    if (slot->started < record->progress.started)
        slot->started = record->progress.started;
    if (slot->done < record->progress.done)
        slot->done = record->progress.done;
    slot_settle(slot);
    return ENGINE_OK;
}

int progress_reached(struct process *process, const struct clock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        struct slot_state *slot = slot_get(process, clock->entry[i].slot);
        if (!slot)
            return -1;
        if (slot->done < clock->entry[i].launch)
            slot->done = clock->entry[i].launch;
        if (slot->seen < clock->entry[i].launch)
            slot->seen = clock->entry[i].launch;
        slot_settle(slot);
    }
    return 0;
}

bool progress_was_seen(struct process *process, const struct clock_entry *launch)
{
    const struct slot_state *slot = slot_find(process, launch->slot);
    return !slot || slot->seen >= launch->launch;
}

void progress_prune(struct process *process, struct clock *clock)
{
    for (uint32_t i = 0; i < clock->count;) {
        if (progress_was_seen(process, &clock->entry[i]))
            clock_drop(clock, i);
        else
            i++;
    }
}

void progress_forget(struct process *process, uint64_t key)
{
    struct slot_state *slot = slot_find(process, key);
    if (!slot)
        return;
    HASH_DEL(process->slots, slot);
    free(slot->queue);
    free(slot);
}

int progress_visit(struct process *process, const struct clock *clock,
                   int (*visit)(void *context, const struct pending *pending), void *context)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        struct slot_state *slot = slot_find(process, clock->entry[i].slot);
        for (uint32_t k = 0; slot && k < slot->count && queue_at(slot, k)->launch <= clock->entry[i].launch; k++) {
            if (queue_at(slot, k)->launch <= slot->done)
                continue;
            int result = visit(context, queue_at(slot, k));
            if (result)
                return result;
        }
    }
    return 0;
}

void progress_free(struct process *process)
{
    struct slot_state *slot, *next;
    HASH_ITER(hh, process->slots, slot, next) {
        HASH_DEL(process->slots, slot);
        free(slot->queue);
        free(slot);
    }
}
