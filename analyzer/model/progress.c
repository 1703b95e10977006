/* progress.c: applies the progress that the GPU reported to the operations of members. */
#include "analyzer/model/progress.h"

#include <stdlib.h>

#include "analyzer/match/channel.h"
#include "analyzer/model/array.h"
#include "analyzer/model/exact.h"
#include "analyzer/model/issued.h"
#include "analyzer/model/timelines.h"
#include "analyzer/match/window.h"
#include "lib/trace/lacks.h"

enum {
    QUEUE_LONG = 4096, /* from here on operations that nobody can be waiting in are let go */
    QUEUE_MAX = 65536  /* the oldest go; nothing in CUDA queues as many */
};

static const uint64_t reading_ns = 1000000; /* from one to the next while work is outstanding */

static struct slot_state *slot_get(struct process *process, uint64_t key)
{
    struct slot_state *slot;
    TABLE_FIND(process->progress.slots, &key, slot);
    if (slot)
        return slot;
    slot = calloc(1, sizeof *slot);
    if (!slot)
        return NULL;
    slot->key = key;
    TABLE_ADD(process->progress.slots, key, slot);
    if (!TABLE_ADDED(slot)) {
        free(slot);
        return NULL;
    }
    return slot;
}

static struct pending *queue_at(const struct stream_state *stream, uint32_t index)
{
    return &stream->queue[(stream->head + index) & (stream->capacity - 1)];
}

/* The first time at which the slot had said that the launch was started, or done; 0 not known. */
static uint64_t slot_time_of(const struct slot_state *slot, uint64_t launch, bool is_done)
{
    uint32_t first = slot->aheads > SLOT_TIMES ? slot->aheads - SLOT_TIMES : 0;
    for (uint32_t i = first; slot->ahead && i < slot->aheads; i++) {
        const struct slot_time *said = &slot->ahead[i % SLOT_TIMES];
        if ((is_done ? said->done : said->started) >= launch)
            return said->time_ns;
    }
    return 0;
}

/* Keeps what a slot says of operations that are not known yet: progress is read more often than
 * records are. */
static int note_ahead(struct slot_state *slot, uint64_t time_ns)
{
    if (slot->started <= slot->issued && slot->done <= slot->issued)
        return 0;
    if (!slot->ahead && !(slot->ahead = calloc(SLOT_TIMES, sizeof *slot->ahead)))
        return -1;
    slot->ahead[slot->aheads % SLOT_TIMES] = (struct slot_time){slot->started, slot->done, time_ns};
    slot->aheads++;
    return 0;
}

/* The last reading at which nothing of its slot ran. Where the host saw its end before a reading
 * did, and readings keep up (the launch before was in one), that is about a reading ago. */
static uint64_t last_idle_ns(const struct pending *pending, uint64_t done_ns)
{
    const struct slot_state *slot = pending->slot;
    return slot->started && slot->started + 1 == pending->launch ? done_ns - reading_ns
                                                                 : slot->idle_ns;
}

/* The operation is done at `done_ns`. One that was never seen to begin began when it was issued,
 * when the previous one on its stream was done, or after the last reading at which nothing ran,
 * whatever came last. */
static void note_passed(struct stream_state *stream, const struct pending *pending,
                        uint64_t done_ns)
{
    uint64_t started_ns = pending->started_ns;
    if (!started_ns && pending->slot)
        started_ns = last_idle_ns(pending, done_ns);
    if (!pending->started_ns && started_ns < stream->passed_ns)
        started_ns = stream->passed_ns;
    if (started_ns < pending->site.time_ns) /* issued between two readings */
        started_ns = pending->site.time_ns;
    struct passed passed = {
        .member = pending->member,
        .number = pending->number,
        .issued_ns = pending->site.time_ns,
        .started_ns = started_ns < done_ns ? started_ns : done_ns,
        .done_ns = done_ns,
        .site = pending->site,
        .bytes = pending->bytes,
        .iteration = pending->iteration,
        .before_it = pending->before_it,
        .api = pending->signature.api,
        .peer = -1,
    };
    if (pending->channel)
        passed.peer = pending->signature.root;
    uint64_t slot = pending->slot ? pending->slot->key : RECORD_NO_SLOT;
    exact_pass(pending->member->process, slot, pending->launch, &passed);
    stream->passed_ns = done_ns;
}

static void queue_pop(struct stream_state *stream)
{
    stream->slotted -= queue_at(stream, 0)->slot != NULL;
    clock_free(&queue_at(stream, 0)->before);
    stream->head = (stream->head + 1) & (stream->capacity - 1);
    stream->count--;
    if (stream->counted_started)
        stream->counted_started--;
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

/* By host waits or by progress words, whichever has seen more. */
static uint64_t done_up_to(const struct stream_state *stream)
{
    return stream->seen > stream->watched ? stream->seen : stream->watched;
}

/* The index of the first operation above the position. */
static uint32_t index_above(const struct stream_state *stream, uint64_t position)
{
    uint32_t low = 0, high = stream->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (queue_at(stream, middle)->place.position <= position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many at the front are done: all up to the last one that is known to be, in stream order. */
static uint32_t count_passed(const struct stream_state *stream)
{
    uint32_t passed = index_above(stream, done_up_to(stream));
    for (uint32_t i = passed; stream->slotted && i < stream->count; i++) {
        const struct pending *pending = queue_at(stream, i);
        if (pending->slot && pending->launch <= pending->slot->done)
            passed = i + 1;
        else if (pending->slot)
            break;
    }
    return passed;
}

/* Pops what is done, counts what has started. */
static void settle(struct stream_state *stream)
{
    for (uint32_t passed = count_passed(stream); passed; passed--) {
        const struct pending *pending = queue_at(stream, 0);
        count_done(pending);
        note_passed(stream, pending, pending->member->process->now_ns);
        queue_pop(stream);
    }
    while (stream->counted_started < stream->count) {
        struct pending *pending = queue_at(stream, stream->counted_started);
        if (!pending->slot || pending->launch > pending->slot->started)
            break;
        pending->started_ns = slot_time_of(pending->slot, pending->launch, false);
        if (!pending->started_ns)
            pending->started_ns = pending->member->process->now_ns;
        count_started(pending);
        stream->counted_started++;
    }
}

static bool nobody_waits_in(const struct pending *pending)
{
    if (pending->channel)
        return !channel_is_waiting(pending->channel, pending->receives, pending->number);
    return pending->number < window_base(pending->member->comm);
}

static int queue_grow(struct stream_state *stream)
{
    uint32_t capacity = stream->capacity ? 2 * stream->capacity : 8;
    struct pending *queue = malloc(capacity * sizeof *queue);
    if (!queue)
        return -1;
    for (uint32_t i = 0; i < stream->count; i++)
        queue[i] = *queue_at(stream, i);
    free(stream->queue);
    stream->queue = queue;
    stream->capacity = capacity;
    stream->head = 0;
    return 0;
}

/* Takes over what the pending holds, or frees it if there is no memory. */
static int queue_push(struct stream_state *stream, struct pending *pending)
{
    if (stream->count >= QUEUE_LONG)
        while (stream->count && nobody_waits_in(queue_at(stream, 0)))
            queue_pop(stream);
    if (stream->count == QUEUE_MAX)
        queue_pop(stream);
    if (stream->count == stream->capacity && queue_grow(stream)) {
        clock_free(&pending->before);
        return -1;
    }
    stream->count++;
    stream->slotted += pending->slot != NULL;
    *queue_at(stream, stream->count - 1) = *pending;
    return 0;
}

/* Calls of one group are one launch: none of them is before another. */
static void note_launch(struct pending *pending)
{
    struct member *member = pending->member;
    if (!pending->group || pending->group != member->launches.group) {
        member->launches.previous = member->launches.last;
        member->launches.unit = ++member->process->progress.units;
    }
    issued_note_way(&member->launches, pending);
    pending->unit = member->launches.unit;
    member->launches.last = pending->place;
    member->launches.group = pending->group;
    if (!(member->process->info.lacks & LACKS_STREAM) && member->launches.previous.position &&
        member->launches.previous.timeline != pending->place.timeline)
        pending->serial = member->launches.previous;
}

/* What is ahead of it on other streams, without what an earlier operation of its stream names. */
static int note_before(const struct process *process, struct stream_state *stream,
                       struct pending *pending)
{
    timelines_prune(process, &stream->reported);
    for (uint32_t i = 0; i < stream->ahead.count; i++) {
        const struct place *place = &stream->ahead.entry[i];
        if (place->timeline == stream->timeline ||
            clock_at(&stream->reported, place->timeline) >= place->position)
            continue;
        if (clock_raise(&stream->reported, *place) || clock_raise(&pending->before, *place)) {
            clock_free(&pending->before);
            return -1;
        }
    }
    return 0;
}

/* An operation that is done when its record comes. */
static void pass_at_once(struct stream_state *stream, struct pending *pending)
{
    uint64_t done_ns = slot_time_of(pending->slot, pending->launch, true);
    pending->started_ns = slot_time_of(pending->slot, pending->launch, false);
    count_done(pending);
    if (done_ns)
        note_passed(stream, pending, done_ns);
}

int progress_issue(struct process *process, const struct operation *operation,
                   struct channel *channel, struct clock *launch_clock)
{
    const struct record *record = &operation->record;
    struct stream_state *stream = operation->stream;
    struct pending pending = {
        .number = record->op.number,
        .launch = record->op.launch,
        .place = operation->place,
        .member = operation->member,
        .channel = channel,
        .signature = operation->signature,
        .site = operation->site,
        .group = record->op.group,
        .bytes = record->op.count *
                 (record->op.datatype == TYPE_NONE ? 1 : datatype_bytes(record->op.datatype)),
        .before_it = issued_on(process, operation->member->device),
        .stream = record->stream,
        .receives = kind_receives(record->api),
    };
    if (operation->loop.iteration)
        pending.iteration =
            1 + (operation->loop.numbered ? operation->loop.number : operation->loop.iteration);
    note_launch(&pending);
    if (record->op.slot != RECORD_NO_SLOT) {
        if (!(pending.slot = slot_get(process, record->op.slot)))
            return -1;
        pending.slot->stream = stream;
        if (pending.slot->issued < pending.launch)
            pending.slot->issued = pending.launch;
        if (pending.launch <= pending.slot->done) { /* its progress came before its record */
            pass_at_once(stream, &pending);
            return 0;
        }
    }
    if (note_before(process, stream, &pending))
        return -1;
    if (queue_push(stream, &pending))
        return -1;
    settle(stream);
    return launch_clock ? clock_raise(launch_clock, operation->place) : 0;
}

int progress_feed(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    process->gpu_ns = event->site.time_ns;
    if (record->progress.slot == RECORD_NO_SLOT)
        return ENGINE_SKIPPED;
    struct slot_state *slot = slot_get(process, record->progress.slot);
    if (!slot)
        return ENGINE_FAILED;
    /* A hub is given the last of them again. */
    bool is_new = slot->started < record->progress.started;
    if (record->progress.idle_us && slot->started == slot->done && is_new) {
        slot->idle_ns = event->site.time_ns - record->progress.idle_us * UINT64_C(1000);
        slot->started++;
        if (note_ahead(slot, slot->idle_ns))
            return ENGINE_FAILED;
    }
    if (slot->started < record->progress.started)
        slot->started = record->progress.started;
    if (slot->done < record->progress.done)
        slot->done = record->progress.done;
    if (note_ahead(slot, event->site.time_ns))
        return ENGINE_FAILED;
    if (slot->stream)
        settle(slot->stream);
    return ENGINE_OK;
}

void progress_seen(struct stream_state *stream)
{
    for (uint32_t i = 0; i < stream->count; i++) {
        const struct pending *pending = queue_at(stream, i);
        if (pending->place.position > done_up_to(stream))
            break;
        if (pending->slot && pending->slot->done < pending->launch)
            pending->slot->done = pending->launch;
    }
    settle(stream);
}

void progress_forget(struct process *process, struct stream_state *stream)
{
    for (struct slot_state *slot = process->progress.slots; slot; slot = slot->hh.next)
        if (slot->stream == stream)
            slot->stream = NULL;
    while (stream->count)
        queue_pop(stream);
    clock_free(&stream->reported);
    free(stream->queue);
    stream->queue = NULL;
    stream->count = stream->capacity = 0;
}

int progress_visit(struct process *process, const struct clock *clock,
                   int (*visit)(void *context, const struct pending *pending), void *context)
{
    for (uint32_t i = 0; i < clock->count; i++) {
        const struct stream_state *stream = timeline_find(process, clock->entry[i].timeline);
        for (uint32_t k = stream ? count_passed(stream) : 0; stream && k < stream->count; k++) {
            if (queue_at(stream, k)->place.position > clock->entry[i].position)
                break;
            int result = visit(context, queue_at(stream, k));
            if (result)
                return result;
        }
    }
    return 0;
}

bool progress_has_started(struct process *process, const struct pending *pending)
{
    const struct stream_state *stream = timeline_find(process, pending->place.timeline);
    const struct slot_state *slot = pending->slot;
    return !stream || done_up_to(stream) >= pending->place.position ||
           (slot && (slot->started >= pending->launch || slot->done >= pending->launch));
}

enum { VISITED_MOST = 64 }; /* of one position; leaving some out can only make others look free */

/* The operations from index `begin` to `end` - 1, of one position, that are of this unit, or (unit
 * 0) of the last one. */
static int visit_unit(const struct stream_state *stream, uint32_t begin, uint32_t end,
                      uint64_t unit, int (*visit)(void *context, const struct pending *pending),
                      void *context)
{
    uint64_t last = 0;
    for (uint32_t i = begin; i < end; i++)
        if ((!unit || queue_at(stream, i)->unit < unit) && queue_at(stream, i)->unit > last)
            last = queue_at(stream, i)->unit;
    int visited = 0;
    for (uint32_t i = begin; i < end && last && visited < VISITED_MOST; i++) {
        if (queue_at(stream, i)->unit != last)
            continue;
        int result = visit(context, queue_at(stream, i));
        if (result)
            return result;
        visited++;
    }
    return 0;
}

/* What stands up to this place and before `pending`. Calls of one group have one position; a
 * communicator's are launched together, and the communicators in the order of their first use
 * (NCCL, ncclGroupCommJoin). */
static int visit_upto(struct process *process, struct place upto, const struct pending *pending,
                      int (*visit)(void *context, const struct pending *pending), void *context)
{
    const struct stream_state *stream = timeline_find(process, upto.timeline);
    uint32_t end = stream ? index_above(stream, upto.position) : 0;
    uint32_t passed = stream ? count_passed(stream) : 0;
    while (end > passed) {
        uint64_t position = queue_at(stream, end - 1)->place.position;
        uint32_t begin = index_above(stream, position - 1);
        bool same = position == pending->place.position;
        if (begin < passed)
            begin = passed;
        int result = visit_unit(stream, begin, end, same ? pending->unit : 0, visit, context);
        if (result || !same)
            return result;
        end = begin;
    }
    return 0;
}

int progress_visit_ahead(struct process *process, const struct pending *pending,
                         int (*visit)(void *context, const struct pending *pending), void *context)
{
    int result = 0;
    if (pending->serial.position)
        result = visit_upto(process, pending->serial, pending, visit, context);
    if (result || progress_has_started(process, pending))
        return result;
    result = visit_upto(process, pending->place, pending, visit, context);
    for (uint32_t i = 0; !result && i < pending->before.count; i++)
        result = visit_upto(process, pending->before.entry[i], pending, visit, context);
    return result;
}

int progress_visit_before(struct process *process, struct place place,
                          int (*visit)(void *context, const struct pending *pending), void *context)
{
    const struct pending last = {.place = place, .unit = UINT64_MAX};
    return visit_upto(process, place, &last, visit, context);
}

int progress_visit_first(struct process *process, uint32_t most,
                         int (*visit)(void *context, const struct pending *pending), void *context)
{
    for (uint32_t t = 0; t < process->order.timelines; t++) {
        const struct stream_state *stream = process->order.timeline[t];
        uint32_t visited = 0;
        for (uint32_t i = count_passed(stream); i < stream->count && visited < most; i++) {
            const struct pending *pending = queue_at(stream, i);
            if (!pending->slot && process->info.lacks & LACKS_STATE && nobody_waits_in(pending))
                continue; /* nobody will ever say that it is done */
            visited++;
            int result = visit(context, pending);
            if (result)
                return result;
        }
    }
    return 0;
}

void progress_visit_all(struct process *process,
                        void (*visit)(void *context, const struct pending *pending), void *context)
{
    for (uint32_t t = 0; t < process->order.timelines; t++)
        for (uint32_t i = 0; i < process->order.timeline[t]->count; i++)
            visit(context, queue_at(process->order.timeline[t], i));
}

void progress_free(struct process *process)
{
    struct slot_state *slot, *next;
    free(process->issued.on_device);
    exact_free(process);
    HASH_ITER(hh, process->progress.slots, slot, next) {
        HASH_DEL(process->progress.slots, slot);
        free(slot->ahead);
        free(slot);
    }
}
