#include "analyzer/streams.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/progress.h"

enum { HANDLE_DEFAULT = 0, HANDLE_LEGACY = 1, HANDLE_PER_THREAD = 2, STREAM_NON_BLOCKING = 1 };
enum { EVENTS_MAX = 1 << 20 };      /* more of one process is noise, or a program that leaks them */

static struct stream_key key_of(const struct record *record)
{
    struct stream_key key = {record->stream, 0};
    if (key.handle == HANDLE_LEGACY)
        key.handle = HANDLE_DEFAULT;
    if (key.handle == HANDLE_DEFAULT)
        key.owner = record->device;
    else if (key.handle == HANDLE_PER_THREAD)
        key.owner = record->thread;
    return key;
}

static struct stream_state *stream_of_key(struct process *process, struct stream_key key, int device)
{
    struct stream_state *stream;
    TABLE_FIND(process->streams, &key, stream);
    if (stream)
        return stream;
    stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->key = key;
    stream->device = device;
    stream->known = stream->blocking = key.handle <= HANDLE_PER_THREAD;
    TABLE_ADD(process->streams, key, stream);
    if (!TABLE_ADDED(stream)) {
        free(stream);
        return NULL;
    }
    return stream;
}

struct stream_state *stream_get(struct process *process, const struct record *record)
{
    return stream_of_key(process, key_of(record), record->device);
}

bool stream_is_default(const struct stream_state *stream)
{
    return stream->key.handle == HANDLE_DEFAULT;
}

bool streams_are_known(const struct process *process)
{
    for (const struct stream_state *stream = process->streams; stream; stream = stream->hh.next)
        if (!stream->known)
            return false;
    return true;
}

static struct stream_state *legacy_of(struct process *process, int device)
{
    struct stream_key key = {HANDLE_DEFAULT, device};
    struct stream_state *stream;
    TABLE_FIND(process->streams, &key, stream);
    return stream;
}

int stream_put(struct process *process, struct stream_state *stream)
{
    if (!stream->blocking)
        return 0;
    if (!stream_is_default(stream)) {
        struct stream_state *legacy = legacy_of(process, stream->device);
        if (legacy)
            stream->partial |= legacy->partial;
        if (!legacy || legacy->ahead.version == stream->legacy_seen)
            return 0;
        progress_prune(process, &legacy->ahead);
        stream->legacy_seen = legacy->ahead.version;
        return clock_merge(&stream->ahead, &legacy->ahead);
    }
    process->default_puts++;
    for (struct stream_state *other = process->streams; other; other = other->hh.next) {
        if (other == stream || !other->blocking || other->device != stream->device)
            continue;
        stream->partial |= other->partial;
        if (!other->ahead.count)
            continue;
        progress_prune(process, &other->ahead);
        if (clock_merge(&stream->ahead, &other->ahead))
            return -1;
    }
    return 0;
}

static struct event_state *event_get(struct process *process, uint64_t handle)
{
    struct event_state *event;
    TABLE_FIND(process->events, &handle, event);
    if (event)
        return event;
    if (HASH_COUNT(process->events) >= EVENTS_MAX) {
        event = process->events;
        HASH_DEL(process->events, event);
        clock_free(&event->clock);
        free(event);
    }
    event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    event->handle = handle;
    event->device = RECORD_NO_DEVICE;
    TABLE_ADD(process->events, handle, event);
    if (!TABLE_ADDED(event)) {
        free(event);
        return NULL;
    }
    return event;
}

static void event_drop(struct process *process, uint64_t handle)
{
    struct event_state *event;
    TABLE_FIND(process->events, &handle, event);
    if (!event)
        return;
    HASH_DEL(process->events, event);
    clock_free(&event->clock);
    free(event);
}

static void stream_drop(struct process *process, const struct record *record)
{
    struct stream_key key = key_of(record);
    struct stream_state *stream;
    TABLE_FIND(process->streams, &key, stream);
    if (!stream)
        return;
    HASH_DEL(process->streams, stream);
    if (stream->virtual_slot)
        progress_forget(process, stream->virtual_slot);
    clock_free(&stream->ahead);
    free(stream);
}

static int stream_created(struct process *process, const struct record *record)
{
    stream_drop(process, record);       /* the handle is used again */
    struct stream_state *stream = stream_get(process, record);
    if (!stream)
        return ENGINE_FAILED;
    stream->known = true;
    stream->blocking = record->api == API_cudaStreamCreate || !(record->event.flags & STREAM_NON_BLOCKING);
    return ENGINE_OK;
}

static int event_recorded(struct process *process, const struct record *record)
{
    struct stream_state *stream = stream_get(process, record);
    struct event_state *event = stream ? event_get(process, record->event.event) : NULL;
    if (!event || stream_put(process, stream))
        return ENGINE_FAILED;
    progress_prune(process, &stream->ahead);
    clock_clear(&event->clock);
    event->partial = stream->partial;
    return clock_merge(&event->clock, &stream->ahead) ? ENGINE_FAILED : ENGINE_OK;
}

/* One that is not recorded yet holds nothing up (cudaStreamWaitEvent). */
static int event_created(struct process *process, const struct record *record)
{
    struct event_state *event = event_get(process, record->event.event);
    if (!event)
        return ENGINE_FAILED;
    clock_clear(&event->clock);
    event->partial = false;
    event->device = record->device;
    return ENGINE_OK;
}

static int stream_waits_event(struct process *process, const struct record *record)
{
    struct stream_state *stream = stream_get(process, record);
    if (!stream)
        return ENGINE_FAILED;
    uint64_t handle = record->event.event;
    struct event_state *event;
    TABLE_FIND(process->events, &handle, event);
    stream->partial |= !event || event->partial;
    if (!event)
        return stream_put(process, stream) ? ENGINE_FAILED : ENGINE_OK;
    progress_prune(process, &event->clock);
    return stream_put(process, stream) || clock_merge(&stream->ahead, &event->clock) ? ENGINE_FAILED : ENGINE_OK;
}

int streams_feed(struct process *process, const struct record *record)
{
    uint64_t handle = record->event.event;
    struct event_state *event = NULL;
    struct stream_state *stream;
    if (record->result != 0 && record->api != API_cudaEventDestroy && record->api != API_cudaStreamDestroy)
        return ENGINE_OK;
    switch (record->api) {
    case API_cudaStreamCreate: case API_cudaStreamCreateWithFlags: case API_cudaStreamCreateWithPriority:
        return stream_created(process, record);
    case API_cudaStreamDestroy:
        stream_drop(process, record);
        return ENGINE_OK;
    case API_cudaEventCreate: case API_cudaEventCreateWithFlags:
        return event_created(process, record);
    case API_cudaEventDestroy:
        event_drop(process, handle);
        return ENGINE_OK;
    case API_cudaEventRecord: case API_cudaEventRecordWithFlags:
        return record->flags & RECORD_FLAG_CAPTURE ? ENGINE_OK : event_recorded(process, record);
    case API_cudaStreamWaitEvent:
        return record->flags & RECORD_FLAG_CAPTURE ? ENGINE_OK : stream_waits_event(process, record);
    case API_cudaEventQuery:
        TABLE_FIND(process->events, &handle, event);
        return event && progress_reached(process, &event->clock) ? ENGINE_FAILED : ENGINE_OK;
    case API_cudaStreamQuery:
        stream = stream_get(process, record);
        return !stream || progress_reached(process, &stream->ahead) ? ENGINE_FAILED : ENGINE_OK;
    default:
        return ENGINE_OK;
    }
}

static int waits_for_device(struct process *process, int device, struct clock *clock)
{
    for (struct stream_state *stream = process->streams; stream; stream = stream->hh.next)
        if (stream->device == device && clock_merge(clock, &stream->ahead))
            return -1;
    return 0;
}

int streams_waited_for(struct process *process, const struct record *record, struct clock *clock)
{
    struct record on_legacy = *record;
    struct stream_state *stream;
    struct event_state *event;
    uint64_t handle = record->wait.event;
    switch (record->api) {
    case API_cudaEventSynchronize:
        TABLE_FIND(process->events, &handle, event);
        return event ? clock_merge(clock, &event->clock) : 0;
    case API_cudaStreamSynchronize:
        stream = stream_get(process, record);
        /* What the legacy stream waits for is ahead of this call as well. */
        if (stream && stream_is_default(stream) && stream_put(process, stream))
            return -1;
        return stream ? clock_merge(clock, &stream->ahead) : -1;
    case API_cudaDeviceSynchronize: case API_cudaDeviceReset: case API_cudaFree: case API_cudaFreeHost:
        return waits_for_device(process, record->device, clock);
    default:                    /* copies that block: on the legacy default stream */
        if (!on_legacy.stream || on_legacy.stream == HANDLE_LEGACY)
            on_legacy.stream = HANDLE_DEFAULT;
        stream = stream_get(process, &on_legacy);
        return !stream || stream_put(process, stream) || clock_merge(clock, &stream->ahead) ? -1 : 0;
    }
}

void streams_free(struct process *process)
{
    struct stream_state *stream, *next_stream;
    HASH_ITER(hh, process->streams, stream, next_stream) {
        HASH_DEL(process->streams, stream);
        clock_free(&stream->ahead);
        free(stream);
    }
    struct event_state *event, *next_event;
    HASH_ITER(hh, process->events, event, next_event) {
        HASH_DEL(process->events, event);
        clock_free(&event->clock);
        free(event);
    }
}
