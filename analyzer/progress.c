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
    clock_free(&queue_at(slot, 0)->before);
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

static void slot_free(struct slot_state *slot)
{
    while (slot->count)
        queue_pop(slot);
    clock_free(&slot->told);
    free(slot->queue);
    free(slot);
}

/* Takes over what the pending holds, or frees it if there is no memory. */
static int queue_push(struct slot_state *slot, struct pending *pending)
{
    if (slot->count >= QUEUE_LONG)
        while (slot->count && nobody_waits_in(queue_at(slot, 0)))
            queue_pop(slot);
    if (slot->count == QUEUE_MAX)
        queue_pop(slot);
    if (slot->count == slot->capacity && queue_grow(slot)) {
        clock_free(&pending->before);
        return -1;
    }
    slot->count++;
    *queue_at(slot, slot->count - 1) = *pending;
    return 0;
}

/* The launch that an earlier call of the same group and member has on a made-up slot; 0 if there is none. */
static uint64_t launch_of_group(struct slot_state *slot, const struct pending *pending)
{
    for (uint32_t i = slot->count; pending->group && i-- > 0 && queue_at(slot, i)->group == pending->group;)
        if (queue_at(slot, i)->member == pending->member)
            return queue_at(slot, i)->launch;
    return 0;
}

static struct slot_state *slot_of(struct process *process, struct stream_state *stream, const struct record *record,
                                  struct pending *pending)
{
    pending->launch = record->op.launch;
    if (record->op.slot != RECORD_NO_SLOT)
        return slot_get(process, record->op.slot);
    if (!stream->virtual_slot)
        stream->virtual_slot = SLOT_VIRTUAL | ++process->virtual_slots;
    struct slot_state *slot = slot_get(process, stream->virtual_slot);
    if (slot) {
        pending->launch = launch_of_group(slot, pending);
        if (!pending->launch)
            pending->launch = ++slot->next_launch;
    }
    return slot;
}

/* Calls of one group are one launch: none of them is before another. */
static void note_launch(struct pending *pending)
{
    struct member *member = pending->member;
    if (!pending->group || pending->group != member->last_group)
        member->launch_before = member->last_launch;
    member->last_launch = pending->place;
    member->last_group = pending->group;
    if (member->launch_before.launch && member->launch_before.slot != pending->place.slot)
        pending->serial = member->launch_before;
}

/* What is ahead of it on its stream, without its own slot and what an earlier operation of the slot names. */
static int note_before(struct slot_state *slot, const struct clock *ahead, struct pending *pending)
{
    for (uint32_t i = 0; i < ahead->count; i++) {
        const struct clock_entry *entry = &ahead->entry[i];
        if (entry->slot == slot->key || clock_at(&slot->told, entry->slot) >= entry->launch)
            continue;
        if (clock_raise(&slot->told, entry->slot, entry->launch) ||
            clock_raise(&pending->before, entry->slot, entry->launch)) {
            clock_free(&pending->before);
            return -1;
        }
    }
    return 0;
}

int progress_issue(struct process *process, struct stream_state *stream, struct operation *operation,
                   struct channel *channel, struct clock *launch_clock)
{
    struct pending pending = {
        .number = operation->record.op.number, .member = operation->member, .channel = channel,
        .signature = operation->signature, .site = operation->site, .group = operation->record.op.group,
        .stream = operation->record.stream,
        .receives = operation->record.api == API_ncclRecv,
    };
    struct slot_state *slot = slot_of(process, stream, &operation->record, &pending);
    if (!slot)
        return -1;
    operation->place = pending.place = (struct clock_entry){slot->key, pending.launch};
    note_launch(&pending);
    if (pending.launch <= slot->done) {     /* progress was read after the record was written */
        count_done(&pending);
        return clock_raise(&stream->ahead, slot->key, pending.launch);
    }
    if (note_before(slot, &stream->ahead, &pending))
        return -1;
    if (queue_push(slot, &pending))
        return -1;
    slot_settle(slot);
    if (launch_clock && clock_raise(launch_clock, slot->key, pending.launch))
        return -1;
    return clock_raise(&stream->ahead, slot->key, pending.launch);
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
    slot_free(slot);
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

bool progress_has_started(struct process *process, const struct pending *pending)
{
    const struct slot_state *slot = slot_find(process, pending->place.slot);
    return !slot || slot->started >= pending->launch || slot->done >= pending->launch;
}

/* The index of the first operation whose launch is above `launch`. */
static uint32_t index_above(struct slot_state *slot, uint64_t launch)
{
    uint32_t low = 0, high = slot->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (queue_at(slot, middle)->launch <= launch)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The operations of the last launch up to this one that is not done. */
static int visit_last(struct process *process, struct clock_entry upto,
                      int (*visit)(void *context, const struct pending *pending), void *context)
{
    struct slot_state *slot = slot_find(process, upto.slot);
    uint32_t i = slot ? index_above(slot, upto.launch) : 0;
    uint64_t launch = i ? queue_at(slot, i - 1)->launch : 0;
    for (; i > 0 && queue_at(slot, i - 1)->launch == launch && launch > slot->done; i--) {
        int result = visit(context, queue_at(slot, i - 1));
        if (result)
            return result;
    }
    return 0;
}

int progress_visit_ahead(struct process *process, const struct pending *pending,
                         int (*visit)(void *context, const struct pending *pending), void *context)
{
    int result = pending->serial.launch ? visit_last(process, pending->serial, visit, context) : 0;
    if (result || progress_has_started(process, pending))
        return result;
    result = visit_last(process, (struct clock_entry){pending->place.slot, pending->launch - 1}, visit, context);
    for (uint32_t i = 0; !result && i < pending->before.count; i++)
        result = visit_last(process, pending->before.entry[i], visit, context);
    return result;
}

int progress_visit_first(struct process *process, uint32_t most,
                         int (*visit)(void *context, const struct pending *pending), void *context)
{
    for (struct slot_state *slot = process->slots; slot; slot = slot->hh.next)
        for (uint32_t i = 0; i < slot->count && i < most; i++) {
            int result = queue_at(slot, i)->launch > slot->done ? visit(context, queue_at(slot, i)) : 0;
            if (result)
                return result;
        }
    return 0;
}

void progress_free(struct process *process)
{
    struct slot_state *slot, *next;
    HASH_ITER(hh, process->slots, slot, next) {
        HASH_DEL(process->slots, slot);
        slot_free(slot);
    }
}
