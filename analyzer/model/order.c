/* order.c: keeps the happens-before order of the work of a process. */
#include "analyzer/model/order.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/devices.h"
#include "analyzer/model/graphs.h"
#include "analyzer/model/memory.h"
#include "analyzer/model/progress.h"
#include "analyzer/model/timelines.h"
#include "lib/base/invariant.h"
#include "lib/trace/names.h"

enum {
    STREAM_NON_BLOCKING = 1,
    EVENT_INTERPROCESS = 4,
    COPY_DEVICE_TO_DEVICE = 3,
    COPY_DEFAULT = 4
};
enum { EVENTS_MAX = 1 << 20 }; /* more of one process is noise, or a program that leaks them */
enum { HOST_FUNCTIONS_MAX = 4096 };

struct host_function {
    uint64_t launch;    /* serial of its record */
    struct clock clock; /* what is done when it runs */
};

bool order_was_seen(const struct process *process, const struct place *place)
{
    const struct stream_state *stream = timeline_find(process, place->timeline);
    return !stream || stream->seen >= place->position;
}

enum order order_before(const struct process *process, const struct place *place,
                        const struct stream_state *stream)
{
    if (place->timeline == stream->timeline ||
        clock_at(&stream->ahead, place->timeline) >= place->position ||
        order_was_seen(process, place))
        return ORDER_BEFORE;
    return place->position <= stream->ahead.unknown || place->position <= process->order.unknown
               ? ORDER_UNKNOWN
               : ORDER_NONE;
}

int order_put(struct process *process, struct stream_state *stream, struct place *place)
{
    if (timeline_join_legacy(process, stream))
        return -1;
    timelines_prune(process, &stream->ahead);
    invariant(stream->position <= process->now,
              "work on a stream is put there in the order of its issue");
    stream->position = process->now;
    *place = (struct place){stream->timeline, process->now};
    return 0;
}

static struct event_state *event_find(struct process *process, uint64_t handle)
{
    struct event_state *event;
    TABLE_FIND(process->order.events, &handle, event);
    return event;
}

static void event_remove(struct process *process, struct event_state *event)
{
    HASH_DEL(process->order.events, event);
    clock_free(&event->clock);
    free(event);
}

static struct event_state *event_get(struct process *process, uint64_t handle)
{
    struct event_state *event = event_find(process, handle);
    if (event)
        return event;
    if (HASH_COUNT(process->order.events) >= EVENTS_MAX)
        event_remove(process, process->order.events);
    event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->handle = handle;
    event->device = RECORD_NO_DEVICE;
    TABLE_ADD(process->order.events, handle, event);
    if (!TABLE_ADDED(event)) {
        free(event);
        return NULL;
    }
    return event;
}

/* One that is not recorded yet holds nothing up (cudaStreamWaitEvent). */
static int event_created(struct process *process, const struct record *record)
{
    struct event_state *event = event_get(process, record->event.event);
    if (!event)
        return ENGINE_FAILED;
    clock_clear(&event->clock);
    event->capture = 0;
    event->device = record->device;
    event->foreign =
        record->api == API_cudaIpcOpenEventHandle ||
        (record->api == API_cudaEventCreateWithFlags && record->event.flags & EVENT_INTERPROCESS);
    return ENGINE_OK;
}

static int event_recorded(struct process *process, const struct record *record)
{
    struct stream_state *stream;
    struct event_state *event = event_get(process, record->event.event);
    if (!event || order_stream(process, record, &stream))
        return ENGINE_FAILED;
    clock_clear(&event->clock);
    if (!stream) { /* in a capture that is not known */
        clock_raise_unknown(&event->clock, process->now);
        return ENGINE_OK;
    }
    if (timeline_join_legacy(process, stream))
        return ENGINE_FAILED;
    timelines_prune(process, &stream->ahead);
    event->capture =
        stream->capture && record->flags & RECORD_FLAG_CAPTURE ? capture_id(stream->capture) : 0;
    return timeline_into(process, stream, &event->clock) ? ENGINE_FAILED : ENGINE_OK;
}

/* Adds what the event stands for to the clock of its waiter. */
static int event_into(struct process *process, struct event_state *event, struct clock *clock)
{
    if (!event || event->foreign)
        clock_raise_unknown(clock, process->now);
    if (!event)
        return 0;
    timelines_prune(process, &event->clock);
    return clock_merge(clock, &event->clock);
}

static int stream_waits_event(struct process *process, const struct record *record)
{
    struct event_state *event = event_find(process, record->event.event);
    struct stream_state *stream;
    if (record->flags & RECORD_FLAG_CAPTURE && event && event->capture &&
        capture_join(process, record, event->capture))
        return ENGINE_FAILED;
    if (order_stream(process, record, &stream))
        return ENGINE_FAILED;
    if (!stream)
        return ENGINE_OK;
    return timeline_join_legacy(process, stream) || event_into(process, event, &stream->ahead)
               ? ENGINE_FAILED
               : ENGINE_OK;
}

/* A host wait for all of the clock has returned. */
static void order_reached(struct process *process, const struct clock *clock)
{
    for (uint32_t i = 0; i < clock->count; i++)
        timeline_seen(process, &clock->entry[i]);
    if (process->order.unknown < clock->unknown)
        process->order.unknown = clock->unknown;
    timelines_reap(process);
}

static int query_said_done(struct process *process, const struct record *record)
{
    struct clock clock = {0};
    struct stream_state *stream = NULL;
    int result;
    if (record->api == API_cudaStreamQuery)
        result = order_stream(process, record, &stream) ||
                         (stream && timeline_into(process, stream, &clock))
                     ? -1
                     : 0;
    else
        result = event_into(process, event_find(process, record->event.event), &clock);
    if (!result && record->flags & RECORD_FLAG_WATCHDOG)
        timelines_watched(process, &clock);
    else if (!result)
        order_reached(process, &clock);
    clock_free(&clock);
    return result ? ENGINE_FAILED : ENGINE_OK;
}

static int feed_event(struct process *process, const struct record *record)
{
    struct event_state *event;
    struct stream_state *stream;
    if (record->result != 0 && record->api != API_cudaEventDestroy)
        return ENGINE_OK;
    switch (record->api) {
    case API_cudaEventCreate:
    case API_cudaEventCreateWithFlags:
    case API_cudaIpcOpenEventHandle:
        return event_created(process, record);
    case API_cudaEventDestroy:
        if ((event = event_find(process, record->event.event)))
            event_remove(process, event);
        return ENGINE_OK;
    case API_cudaEventRecord:
    case API_cudaEventRecordWithFlags:
        return event_recorded(process, record);
    case API_cudaStreamWaitEvent:
        return stream_waits_event(process, record);
    case API_cudaEventQuery:
    case API_cudaStreamQuery:
        return query_said_done(process, record);
    case API_cuStreamWaitValue:
        if (order_stream(process, record, &stream))
            return ENGINE_FAILED;
        if (stream)
            clock_raise_unknown(&stream->ahead, process->now);
        return ENGINE_OK;
    default:
        return ENGINE_OK;
    }
}

static int feed_stream(struct process *process, const struct record *record)
{
    if (record->api == API_cudaStreamDestroy) {
        timeline_end(process, record);
        return ENGINE_OK;
    }
    if (record->result != 0)
        return ENGINE_OK;
    timeline_end(process, record); /* the handle is used again */
    struct stream_state *stream = timeline_get(process, record);
    if (!stream)
        return ENGINE_FAILED;
    stream->known = true;
    stream->born = stream->seen = process->now;
    stream->blocking = record->api == API_cudaStreamCreate ||
                       !(record->event.flags & STREAM_NON_BLOCKING);
    return ENGINE_OK;
}

/* What it does on the host comes after what is ahead of it, and a program may act on that. If
 * no record shows when it ran it may have run at any time. */
static int host_function_put(struct process *process, const struct stream_state *stream,
                             const struct record *record)
{
    struct order_state *order = &process->order;
    bool shows_run = record->launch.known & LAUNCH_REPORTS_RUN;
    if (!shows_run || order->host_function_count == HOST_FUNCTIONS_MAX) {
        order->unknown = process->now;
        return 0;
    }
    struct host_function *grown = array_room(order->host_functions, sizeof *grown,
                                             order->host_function_count,
                                             &order->host_function_capacity, 4);
    if (!grown)
        return -1;
    order->host_functions = grown;
    struct host_function *function = &grown[order->host_function_count];
    *function = (struct host_function){.launch = record->serial};
    if (timeline_into(process, stream, &function->clock))
        return -1;
    order->host_function_count++;
    return 0;
}

static void host_function_ran(struct process *process, const struct record *record)
{
    struct order_state *order = &process->order;
    for (uint32_t i = 0; i < order->host_function_count; i++) {
        struct host_function *function = &order->host_functions[i];
        if (function->launch != record->leave.enter)
            continue;
        order_reached(process, &function->clock);
        clock_free(&function->clock);
        *function = order->host_functions[--order->host_function_count];
        return;
    }
}

int order_notice(struct event *event)
{
    struct process *process = event->process;
    const struct record *record = event->record;
    if (record->api == API_notice_host_function) {
        host_function_ran(process, record);
        return ENGINE_OK;
    }
    struct stream_state *stream = timeline_get(process, record);
    if (!stream)
        return ENGINE_FAILED;
    if (!stream->known) {
        stream->known = true;
        stream->blocking = !(record->event.flags & STREAM_NON_BLOCKING);
    }
    return ENGINE_OK;
}

/* Work that the shim reported late stands where it was issued; a stream that was made since is
 * another one. */
static int find_late_work(struct thread *thread, const struct record *record)
{
    struct work *work = &thread->work;
    if (order_stream(thread->process, record, &work->stream))
        return ENGINE_FAILED;
    if (work->stream && work->stream->born > record->word[RECORD_ISSUED])
        work->stream = NULL;
    if (work->stream)
        work->place = (struct place){work->stream->timeline, record->word[RECORD_ISSUED]};
    return ENGINE_OK;
}

static int put_work(struct thread *thread, const struct record *record)
{
    if (record->flags & RECORD_FLAG_MORE)
        return ENGINE_OK; /* goes on with the record before it */
    thread->work = (struct work){0};
    if (record->flags & RECORD_FLAG_LATE)
        return find_late_work(thread, record);
    if (order_stream(thread->process, record, &thread->work.stream))
        return ENGINE_FAILED;
    if (!thread->work.stream || record->result != 0)
        return ENGINE_OK;
    if (order_put(thread->process, thread->work.stream, &thread->work.place))
        return ENGINE_FAILED;
    if ((record->api == API_cudaLaunchHostFunc || record->api == API_cudaStreamAddCallback) &&
        !(record->flags & RECORD_FLAG_CAPTURE) &&
        host_function_put(thread->process, thread->work.stream, record))
        return ENGINE_FAILED;
    return ENGINE_OK;
}

int order_feed(struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    switch (event->class) {
    case CLASS_STREAM:
        return feed_stream(thread->process, record);
    case CLASS_EVENT:
        return feed_event(thread->process, record);
    case CLASS_GRAPH:
        return record->api == API_cudaGraphLaunch ? put_work(thread, record)
                                                  : graphs_feed(thread->process, record);
    default:
        return put_work(thread, record);
    }
}

static int wait_for_device(struct process *process, int device, struct clock *clock)
{
    for (uint32_t i = 0; i < process->order.timelines; i++) {
        struct stream_state *stream = process->order.timeline[i];
        if (stream->device == device && !timeline_is_captured(stream) &&
            timeline_into(process, stream, clock))
            return -1;
    }
    return 0;
}

static bool is_on_device(const struct process *process, uint64_t pointer)
{
    const struct allocation *allocation = memory_find(process, pointer);
    return allocation &&
           (allocation->type == MEMORY_DEVICE || allocation->type == MEMORY_DEVICE_MAPPED);
}

/* "For transfers from device memory to device memory, no host-side synchronization is performed";
 * "the synchronous memset functions are asynchronous with respect to the host except when the
 * target is pinned host memory or a Unified Memory region". */
static bool host_goes_on(const struct process *process, const struct record *record)
{
    bool onto_device = is_on_device(process, record->wait.dst);
    switch (record->api) {
    case API_cudaMemset:
    case API_cudaMemset2D:
    case API_cudaMemset3D:
        return onto_device;
    case API_cudaMemcpy:
    case API_cudaMemcpy2D:
    case API_cudaMemcpy3D:
    case API_cudaMemcpyToSymbol:
    case API_cudaMemcpyFromSymbol:
        return (record->wait.kind == COPY_DEVICE_TO_DEVICE || record->wait.kind == COPY_DEFAULT) &&
               onto_device && is_on_device(process, record->wait.src);
    default: /* cudaMemcpyPeer is "serialized with respect to all pending and future work" */
        return false;
    }
}

/* Of a copy from pageable memory "a stream sync is performed before the copy is initiated", and
 * none after it. */
static int wait_for_earlier(struct process *process, struct stream_state *stream,
                            struct clock *clock)
{
    if (timeline_join_legacy(process, stream) || clock_merge(clock, &stream->ahead))
        return -1;
    return clock_raise(clock, (struct place){stream->timeline, stream->position});
}

static int wait_for_copy(struct thread *thread, const struct record *record)
{
    struct record on_default = *record;
    if (record->api != API_cudaMemcpyAsync_to_pageable && !timeline_is_of_thread(record->stream))
        on_default.stream = 0;
    struct work *work = &thread->work;
    if (order_stream(thread->process, &on_default, &work->stream))
        return -1;
    if (!work->stream)
        return 0;
    bool is_staged = record->flags & RECORD_FLAG_PAGEABLE;
    if (is_staged && wait_for_earlier(thread->process, work->stream, &thread->waits_for))
        return -1;
    if (order_put(thread->process, work->stream, &work->place))
        return -1;
    return is_staged || host_goes_on(thread->process, record)
               ? 0
               : timeline_into(thread->process, work->stream, &thread->waits_for);
}

/* "This API will not perform any implicit synchronization when the pointer was allocated with
 * cudaMallocAsync or cudaMallocFromPoolAsync"; of NULL "no operation is performed" (cudaFree). */
static bool frees_without_waiting(const struct process *process, const struct record *record)
{
    const struct allocation *allocation = memory_find(process, record->wait.dst);
    return !record->wait.dst || (allocation && allocation->stream_ordered);
}

int order_wait(struct event *event)
{
    struct thread *thread = event->thread;
    const struct record *record = event->record;
    struct process *process = thread->process;
    struct stream_state *stream;
    thread->work = (struct work){0};
    switch (record->api) {
    case API_cudaEventSynchronize:
    case API_cudaEventQuery_loop:
        return event_into(process, event_find(process, record->wait.event), &thread->waits_for);
    case API_cudaStreamSynchronize:
    case API_cudaStreamQuery_loop:
        if (order_stream(process, record, &stream))
            return -1;
        /* What the legacy stream waits for is ahead of this call as well. */
        if (stream && order_is_default(stream) && timeline_join_legacy(process, stream))
            return -1;
        return stream ? timeline_into(process, stream, &thread->waits_for) : 0;
    case API_cudaFree:
    case API_cudaFreeHost:
        if (frees_without_waiting(process, record))
            return 0;
        /* fall through */
    case API_cudaDeviceSynchronize:
    case API_cudaDeviceReset:
        return wait_for_device(process, record->device, &thread->waits_for);
    default: /* copies */
        return wait_for_copy(thread, record);
    }
}

int order_wait_returned(struct thread *thread)
{
    struct process *process = thread->process;
    const struct record *enter = &thread->enter;
    bool of_device = enter->api == API_cudaDeviceSynchronize || enter->api == API_cudaDeviceReset;
    order_reached(process, &thread->waits_for);
    return of_device ? device_see(process, enter->device, enter->serial) : ENGINE_OK;
}

void order_free(struct process *process)
{
    captures_free(process);
    timelines_free(process);
    struct event_state *event, *next;
    HASH_ITER(hh, process->order.events, event, next)
        event_remove(process, event);
    for (uint32_t i = 0; i < process->order.host_function_count; i++)
        clock_free(&process->order.host_functions[i].clock);
    free(process->order.host_functions);
}

int order_stream(struct process *process, const struct record *record, struct stream_state **stream)
{
    *stream = timeline_get(process, record);
    if (*stream && record->flags & RECORD_FLAG_CAPTURE) {
        if (!(*stream)->capture) {
            *stream = NULL;
            return 0;
        }
        *stream = capture_stream(process, *stream);
    }
    return *stream ? 0 : -1;
}
