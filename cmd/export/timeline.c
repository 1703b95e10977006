/* timeline.c: streams the operations and host calls of traces with their begin and end times. */
#include "cmd/export/timeline.h"

#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "cmd/export/host_calls.h"
#include "cmd/progress.h"
#include "lib/trace/names.h"

enum {
    QUEUE_MAX =
        8192, /* operations in flight on one stream; what is more was done without being seen */
    UNRETURNED_MAX =
        16384 /* calls in all processes whose return was not seen; what is more was lost */
};

struct operation_key {
    uint64_t process, id;
};

/* An operation that is not over, by process and serial. */
struct pending_operation {
    struct operation_key key;
    struct timeline_operation operation;
    struct record call;
    uint64_t started_ns;
    bool done;
    struct pending_operation *next;            /* on its stream */
    struct pending_operation *earlier, *later; /* of those that wait for nothing but their return */
    UT_hash_handle hh;
};

/* The operations of one progress slot (a member's launches on one stream), by process and slot. */
struct queue {
    struct operation_key key;
    uint64_t stream;
    int device;
    uint64_t started, done;                /* launches, as far as was seen */
    uint64_t end_ns, end_launch, begin_ns; /* of the last that is over */
    struct pending_operation *first, *last;
    uint64_t count;
    struct queue *sibling; /* of the same process */
    UT_hash_handle hh;
};

/* Of a process: when the collector looked at its progress; what was not there at the look before is
 * younger. */
struct progression {
    uint64_t before_ns, last_ns;
    struct queue *queues;
};

struct timeline_reader {
    struct trace *trace;
    struct progression *progression; /* by process */
    const struct timeline_visitor *visitor;
    struct pending_operation *pending;
    struct pending_operation *unreturned;
    int unreturned_count;
    struct queue *queues;
    struct host_calls hosts;
    bool failed; /* memory was short */
};

static struct queue *queue_of(struct timeline_reader *reader, int process, uint32_t slot)
{
    const struct operation_key key = {(uint64_t)process, slot};
    struct queue *queue;
    HASH_FIND(hh, reader->queues, &key, sizeof key, queue);
    if (queue)
        return queue;
    queue = calloc(1, sizeof *queue);
    if (queue) {
        queue->key = key;
        queue->sibling = reader->progression[process].queues;
        reader->progression[process].queues = queue;
        HASH_ADD(hh, reader->queues, key, sizeof key, queue);
    } else {
        reader->failed = true;
    }
    return queue;
}

/* Emits the operation and frees it. It is in no queue. */
static void emit_operation(struct timeline_reader *reader, struct pending_operation *pending)
{
    HASH_DEL(reader->pending, pending);
    if (reader->visitor->operation)
        reader->visitor->operation(reader->visitor->context, &pending->operation);
    free(pending);
}

/* The operation waits for nothing but the return of its call. Where many do, the records of the
 * oldest were lost. */
static void await_return(struct timeline_reader *reader, struct pending_operation *pending)
{
    DL_APPEND2(reader->unreturned, pending, earlier, later);
    if (++reader->unreturned_count <= UNRETURNED_MAX)
        return;
    struct pending_operation *oldest = reader->unreturned;
    DL_DELETE2(reader->unreturned, oldest, earlier, later);
    reader->unreturned_count--;
    if (!oldest->operation.end_ns)
        oldest->operation.end_ns = oldest->operation.issued_ns;
    emit_operation(reader, oldest);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Takes the first of the queue, which is known to be done at `seen_ns`, as are `left` launches, it
 * among them; `next`, if it is not NULL, is the first of the launch behind it. */
static void finish_first(struct timeline_reader *reader, struct queue *queue,
                         const struct pending_operation *next, uint64_t left, uint64_t seen_ns)
{
    struct pending_operation *pending = queue->first;
    struct timeline_operation *operation = &pending->operation;
    queue->first = pending->next;
    queue->last = queue->first ? queue->last : NULL;
    queue->count--;
    if (queue->end_launch &&
        pending->call.op.launch == queue->end_launch) { /* calls of one group run as one */
        operation->begin_ns = later(queue->begin_ns, operation->issued_ns);
        operation->end_ns = later(queue->end_ns, operation->begin_ns);
    } else {
        uint64_t before_ns = reader->progression[operation->process].before_ns;
        uint64_t earliest_ns = pending->started_ns;
        if (!earliest_ns)
            earliest_ns = later(operation->issued_ns, before_ns < seen_ns ? before_ns : 0);
        operation->begin_ns = later(earliest_ns, queue->end_ns);
        operation->end_ns = later(seen_ns, operation->begin_ns);
        if (next && next->operation.issued_ns > operation->begin_ns &&
            next->operation.issued_ns < operation->end_ns)
            operation->end_ns = next->operation.issued_ns;
        else if (next)
            operation->end_ns = operation->begin_ns +
                                (operation->end_ns - operation->begin_ns) / left;
    }
    operation->started = true;
    pending->done = true;
    queue->begin_ns = operation->begin_ns;
    queue->end_ns = operation->end_ns;
    queue->end_launch = pending->call.op.launch;
    if (operation->returned_ns)
        emit_operation(reader, pending);
    else
        await_return(reader, pending);
}

/* The first operation behind the launch at hand, if it is done too. */
static const struct pending_operation *next_launch(const struct queue *queue, uint64_t done)
{
    const struct pending_operation *pending = queue->first;
    while (pending && pending->call.op.launch == queue->first->call.op.launch)
        pending = pending->next;
    return pending && pending->call.op.launch <= done ? pending : NULL;
}

static uint64_t launches_done(const struct queue *queue)
{
    uint64_t count = 0, launch = 0;
    for (const struct pending_operation *pending = queue->first;
         pending && pending->call.op.launch <= queue->done; pending = pending->next) {
        count += pending->call.op.launch != launch;
        launch = pending->call.op.launch;
    }
    return count;
}

static void advance_queue(struct timeline_reader *reader, struct queue *queue, uint64_t time_ns)
{
    for (struct pending_operation *pending = queue->first;
         pending && pending->call.op.launch <= queue->started; pending = pending->next)
        if (!pending->started_ns && pending->call.op.launch > queue->done) {
            uint64_t before_ns = reader->progression[queue->key.process].before_ns;
            pending->started_ns =
                later(before_ns < time_ns ? before_ns : 0, pending->operation.issued_ns);
            pending->operation.begin_ns = later(pending->started_ns, queue->end_ns);
            pending->operation.started = true;
        }
    uint64_t left = launches_done(queue);
    while (queue->first && queue->first->call.op.launch <= queue->done) {
        uint64_t launch = queue->first->call.op.launch;
        finish_first(reader, queue, next_launch(queue, queue->done), left, time_ns);
        left -= queue->first && queue->first->call.op.launch != launch;
    }
}

static void read_progress(struct timeline_reader *reader, int process, const struct record *record,
                          uint64_t time_ns)
{
    struct queue *queue = queue_of(reader, process, record->progress.slot);
    struct progression *progression = &reader->progression[process];
    if (!queue)
        return;
    if (time_ns > progression->last_ns) {
        progression->before_ns = progression->last_ns;
        progression->last_ns = time_ns;
    }
    queue->started = later(queue->started, record->progress.started);
    queue->done = later(queue->done, record->progress.done);
    advance_queue(reader, queue, time_ns);
}

/* A host wait has returned: what was issued before it on its stream, or on the device, is done. */
static void take_wait(struct timeline_reader *reader, int process, const struct record *record,
                      uint64_t entered_ns, uint64_t time_ns)
{
    bool of_stream = record->api == API_cudaStreamSynchronize;
    if (record->result || !entered_ns || (!of_stream && record->api != API_cudaDeviceSynchronize))
        return;
    for (struct queue *queue = reader->progression[process].queues; queue; queue = queue->sibling) {
        if (queue->device != record->device || (of_stream && queue->stream != record->stream))
            continue;
        for (const struct pending_operation *pending = queue->first;
             pending && pending->operation.issued_ns < entered_ns; pending = pending->next)
            queue->done = later(queue->done, pending->call.op.launch);
        queue->started = later(queue->started, queue->done);
        advance_queue(reader, queue, time_ns);
    }
}

static void append_pending(struct timeline_reader *reader, struct queue *queue,
                           struct pending_operation *pending, uint64_t time_ns)
{
    queue->stream = pending->call.stream;
    queue->device = pending->call.device;
    *(queue->last ? &queue->last->next : &queue->first) = pending;
    queue->last = pending;
    queue->count++;
    pending->operation.begin_ns = later(time_ns, queue->end_ns);
    if (queue->count > QUEUE_MAX)
        finish_first(reader, queue, NULL, 1, time_ns);
    advance_queue(reader, queue, time_ns);
}

static void queue_operation(struct timeline_reader *reader, int process,
                            const struct record *record, uint64_t time_ns)
{
    struct pending_operation *pending;
    const struct operation_key key = {(uint64_t)process, record->serial};
    HASH_FIND(hh, reader->pending, &key, sizeof key, pending);
    if (pending || !reader->visitor->operation || record->flags & RECORD_FLAG_CAPTURE)
        return;
    bool has_progress = record->op.slot != RECORD_NO_SLOT && record->op.launch > 0;
    struct queue *queue = has_progress ? queue_of(reader, process, record->op.slot) : NULL;
    pending = calloc(1, sizeof *pending);
    if (!pending || (has_progress && !queue)) {
        free(pending);
        reader->failed = true;
        return;
    }
    pending->key = key;
    pending->call = *record;
    pending->operation = (struct timeline_operation){.process = process,
                                                     .call = &pending->call,
                                                     .issued_ns = time_ns,
                                                     .begin_ns = time_ns,
                                                     .has_progress = has_progress};
    HASH_ADD(hh, reader->pending, key, sizeof key, pending);
    if (queue)
        append_pending(reader, queue, pending, time_ns);
    else
        await_return(reader, pending);
}

static void take_return(struct timeline_reader *reader, int process, const struct record *record,
                        uint64_t time_ns)
{
    const struct operation_key key = {(uint64_t)process, record->leave.enter};
    struct pending_operation *pending;
    HASH_FIND(hh, reader->pending, &key, sizeof key, pending);
    if (!pending)
        return;
    pending->operation.returned_ns = later(time_ns, pending->operation.issued_ns + 1);
    pending->operation.result = record->result;
    if (!pending->operation.has_progress)
        pending->operation.end_ns = pending->operation.returned_ns;
    else if (!pending->done)
        return;
    DL_DELETE2(reader->unreturned, pending, earlier, later);
    reader->unreturned_count--;
    emit_operation(reader, pending);
}

static bool is_timeline_call(const struct record *record)
{
    switch (api_class_of(record->api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_COMM:
    case CLASS_WAIT:
        return true;
    default:
        return false;
    }
}

static void begin_call(struct timeline_reader *reader, int process, const struct record *record,
                       uint64_t serial, uint64_t time_ns)
{
    int begun = host_calls_begin(&reader->hosts, process, record->thread, serial, time_ns);
    reader->failed |= begun < 0;
    if (begun > 0 && reader->visitor->begin)
        reader->visitor->begin(reader->visitor->context, process, record->thread, time_ns, record);
}

/* Returns when it was entered, 0 if its beginning is not known. */
static uint64_t end_call(struct timeline_reader *reader, int process, const struct record *record,
                         uint64_t serial, uint64_t time_ns)
{
    uint64_t entered_ns;
    int over = host_calls_end(&reader->hosts, process, record->thread, serial, &entered_ns);
    for (int i = 0; i < over && reader->visitor->end; i++)
        reader->visitor->end(reader->visitor->context, process, record->thread, time_ns);
    return entered_ns;
}

/* Ranges nest within their domain; no serial has this bit. */
static uint64_t range_serial(const struct record *record)
{
    return record->range.domain | UINT64_C(1) << 63;
}

static void read_timeline_record(struct timeline_reader *reader, int process,
                                 const struct record *record)
{
    const struct process_info *info = trace_process(reader->trace, process);
    uint64_t time_ns = info->realtime_ns - info->monotonic_ns + record->time_ns;
    enum api_class class = api_class_of(record->api);
    bool is_operation = class == CLASS_COLLECTIVE || class == CLASS_P2P;
    if (record->api == API_notice_progress) {
        read_progress(reader, process, record, time_ns);
    } else if (record->phase == RECORD_ENTER && is_timeline_call(record)) {
        begin_call(reader, process, record, record->serial, time_ns);
        if (is_operation)
            queue_operation(reader, process, record, time_ns);
    } else if (record->phase == RECORD_LEAVE && is_timeline_call(record)) {
        uint64_t entered_ns = end_call(reader, process, record, record->leave.enter, time_ns);
        if (is_operation)
            take_return(reader, process, record, time_ns);
        take_wait(reader, process, record, entered_ns, time_ns);
    } else if (record->api == API_nvtxRangePush) {
        begin_call(reader, process, record, range_serial(record), time_ns);
    } else if (record->api == API_nvtxRangePop) {
        end_call(reader, process, record, range_serial(record), time_ns);
    }
}

/* What is still in flight, in the order of its issue: uthash keeps that order. */
static void emit_rest(struct timeline_reader *reader)
{
    struct pending_operation *pending, *other;
    HASH_ITER(hh, reader->pending, pending, other)
        emit_operation(reader, pending);
}

static void free_reader(struct timeline_reader *reader)
{
    struct pending_operation *pending, *next_pending;
    struct queue *queue, *next_queue;
    HASH_ITER(hh, reader->pending, pending, next_pending) {
        HASH_DEL(reader->pending, pending);
        free(pending);
    }
    HASH_ITER(hh, reader->queues, queue, next_queue) {
        HASH_DEL(reader->queues, queue);
        free(queue);
    }
    host_calls_free(&reader->hosts);
    free(reader->progression);
    trace_close(reader->trace);
}

const char *timeline_state(const struct timeline_operation *operation)
{
    if (operation->end_ns)
        return "done";
    return operation->started ? "running" : "queued";
}

int timeline_read(const char *const *paths, int count, const struct timeline_visitor *visitor,
                  struct error *err)
{
    struct timeline_reader reader = {.visitor = visitor};
    struct record record;
    uint64_t events = 0;
    int process, more;
    if (trace_open(&reader.trace, paths, count, err))
        return -1;
    reader.progression = calloc((size_t)visitor->processes + 1, sizeof *reader.progression);
    reader.failed = !reader.progression;
    struct progress progress = progress_begin("writing", trace_event_count(reader.trace));
    while (!reader.failed && (more = trace_next(reader.trace, &process, &record, NULL)) != 0) {
        if (more > 0 && process < visitor->processes)
            read_timeline_record(&reader, process, &record);
        progress_show(&progress, ++events);
    }
    progress_end(&progress);
    if (!reader.failed)
        emit_rest(&reader);
    int result = reader.failed ? error_memory(err, "can't follow the operations") : 0;
    free_reader(&reader);
    return result;
}
