/* event.c: records, queries and waits for events. */
#include "emu/core/event.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "emu/core/capture.h"
#include "emu/core/device.h"
#include "emu/core/handles.h"
#include "emu/core/process.h"
#include "emu/core/stream.h"

struct event_record {
    atomic_int references;
    struct emu_stream *stream;
    uint64_t position;
    _Atomic int64_t time_ns;
};

struct emu_event {
    int device;
    const void *context; /* that it was created in (device.h) */
    unsigned flags;
    pthread_mutex_t lock;               /* guards what follows */
    struct event_record *latest;        /* NULL: never recorded */
    struct emu_capture_point *captured; /* recorded in a stream that was being captured */
};

static void record_release(void *arg)
{
    struct event_record *record = arg;

    if (!record || atomic_fetch_sub(&record->references, 1) > 1)
        return;
    emu_stream_release(record->stream);
    free(record);
}

struct emu_event *emu_event_create(unsigned flags)
{
    struct emu_event *event = calloc(1, sizeof(*event));

    if (!event)
        return NULL;
    event->device = emu_device_current();
    event->context = emu_context_current();
    event->flags = flags;
    pthread_mutex_init(&event->lock, NULL);
    if (emu_handles_add(event, HANDLE_EVENT)) {
        pthread_mutex_destroy(&event->lock);
        free(event);
        return NULL;
    }
    return event;
}

struct emu_event *emu_event_find(void *handle)
{
    return emu_handles_kind(handle) == HANDLE_EVENT ? handle : NULL;
}

int emu_event_destroy(struct emu_event *event)
{
    if (!emu_handles_remove(event, HANDLE_EVENT))
        return cudaErrorInvalidResourceHandle;
    record_release(event->latest);
    emu_capture_point_free(event->captured);
    pthread_mutex_destroy(&event->lock);
    free(event);
    return 0;
}

/* Puts either a record or a point of a capture into the event. */
static void replace(struct emu_event *event, struct event_record *record,
                    struct emu_capture_point *captured)
{
    struct event_record *old_record;
    struct emu_capture_point *old_captured;

    pthread_mutex_lock(&event->lock);
    old_record = event->latest;
    old_captured = event->captured;
    event->latest = record;
    event->captured = captured;
    pthread_mutex_unlock(&event->lock);
    record_release(old_record);
    emu_capture_point_free(old_captured);
}

/* The latest record with a reference, or NULL. *captured is set if the event belongs to a capture.
 */
static struct event_record *latest_of(struct emu_event *event, bool *captured)
{
    struct event_record *record;

    pthread_mutex_lock(&event->lock);
    record = event->latest;
    if (record)
        atomic_fetch_add(&record->references, 1);
    *captured = event->captured != NULL;
    pthread_mutex_unlock(&event->lock);
    return record;
}

static int event_pass(void *arg)
{
    struct event_record *record = arg;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    atomic_store(&record->time_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    return 0;
}

int emu_event_record(struct emu_event *event, struct emu_stream *stream)
{
    struct emu_capture_point *point;
    struct event_record *record;
    int error = emu_capture_forbids(stream);

    if (error)
        return error;
    if (event->context != emu_stream_context(stream))
        return cudaErrorInvalidResourceHandle;
    if (atomic_load(&stream->capture)) {
        error = emu_capture_point(stream, &point);
        if (!error)
            replace(event, NULL, point);
        return error;
    }
    record = calloc(1, sizeof(*record));
    if (!record)
        return cudaErrorMemoryAllocation;
    record->stream = emu_stream_hold(stream);
    atomic_init(&record->references, 2); /* the event's and the queue's */
    error = emu_stream_append(stream, "cudaEventRecord", event_pass, record, record_release,
                              &record->position);
    if (error) {
        record_release(record);
        record_release(record);
        return error;
    }
    replace(event, record, NULL);
    return 0;
}

static bool passed(const struct event_record *record)
{
    return atomic_load(&record->stream->done) >= record->position;
}

int emu_event_query(struct emu_event *event)
{
    bool captured;
    struct event_record *record = latest_of(event, &captured);
    int error = emu_device_error(event->device);

    if (!error)
        error = captured ? (int)cudaErrorCapturedEvent : emu_capture_forbids_call();
    if (!error && record && !passed(record))
        error = cudaErrorNotReady;
    record_release(record);
    return error;
}

int emu_event_synchronize(struct emu_event *event)
{
    bool captured;
    struct event_record *record = latest_of(event, &captured);
    int error = captured ? (int)cudaErrorCapturedEvent : emu_capture_forbids_call();

    if (!error)
        error = emu_device_error(event->device);
    if (!error && record)
        error = emu_stream_wait_position(record->stream, record->position, record->stream->device);
    record_release(record);
    return error;
}

static int elapsed(const struct event_record *start, const struct event_record *end,
                   float *milliseconds)
{
    if (!start || !end)
        return cudaErrorInvalidResourceHandle;
    if (!passed(start) || !passed(end))
        return cudaErrorNotReady;
    *milliseconds = (float)(atomic_load(&end->time_ns) - atomic_load(&start->time_ns)) / 1e6f;
    return 0;
}

int emu_event_elapsed(struct emu_event *start, struct emu_event *end, float *milliseconds)
{
    bool captured[2];
    struct event_record *first, *second;
    int error;

    if ((start->flags | end->flags) & cudaEventDisableTiming || start->device != end->device)
        return cudaErrorInvalidResourceHandle;
    first = latest_of(start, &captured[0]);
    second = latest_of(end, &captured[1]);
    error = captured[0] || captured[1] ? cudaErrorCapturedEvent
                                       : elapsed(first, second, milliseconds);
    record_release(first);
    record_release(second);
    return error;
}

/* An event recorded in a capture draws the waiting stream into it. Returns -1 if it was not. */
static int wait_captured(struct emu_stream *stream, struct emu_event *event)
{
    int error = -1;

    pthread_mutex_lock(&event->lock);
    if (event->captured)
        error = emu_capture_join(stream, event->captured);
    pthread_mutex_unlock(&event->lock);
    return error;
}

int emu_stream_wait_event(struct emu_stream *stream, struct emu_event *event)
{
    bool captured;
    struct event_record *record;
    int error = wait_captured(stream, event);

    if (error >= 0)
        return error;
    error = emu_capture_forbids(stream);
    if (error)
        return error;
    if (atomic_load(&stream->capture))
        return cudaErrorStreamCaptureIsolation; /* a capture can't wait for what is outside it */
    record = latest_of(event, &captured);
    if (record)
        error = emu_stream_append_wait(stream, record->stream, record->position);
    record_release(record);
    return error;
}
