/* stream.c: creates, feeds, synchronizes and destroys streams. */
#include "emu/core/stream.h"

#include <driver_types.h>
#include <stdlib.h>
#include <time.h>

#include "emu/core/capture.h"
#include "emu/core/device.h"
#include "emu/core/handles.h"
#include "emu/core/process.h"
#include "emu/core/worker.h"

static struct emu_stream *make_stream(struct emu_device *device, unsigned flags, int priority,
                                      bool legacy)
{
    static _Atomic uint64_t next_id = 1;
    struct emu_stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    stream->legacy = legacy;
    stream->id = atomic_fetch_add(&next_id, 1);
    atomic_init(&stream->references, 1);
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->progress, NULL);
    return stream;
}

struct emu_stream *emu_stream_new_legacy(struct emu_device *device)
{
    return make_stream(device, 0, 0, true);
}

struct emu_stream *emu_stream_new(struct emu_device *device, unsigned flags, int priority)
{
    struct emu_stream *stream = make_stream(device, flags, priority, false);

    if (stream) {
        pthread_mutex_lock(&device->streams_lock);
        stream->next_of_device = device->streams;
        device->streams = stream;
        pthread_mutex_unlock(&device->streams_lock);
    }
    return stream;
}

struct emu_stream *emu_stream_create(struct emu_device *device, unsigned flags, int priority)
{
    struct emu_stream *stream = emu_stream_new(device, flags, priority);

    if (stream && emu_handles_add(stream, HANDLE_STREAM)) {
        emu_stream_destroy(stream);
        return NULL;
    }
    return stream;
}

struct emu_stream *emu_stream_create_here(unsigned flags, int priority)
{
    struct emu_stream *stream = emu_stream_create(emu_device_here(), flags, priority);

    if (stream)
        stream->context = emu_context_current();
    return stream;
}

const void *emu_stream_context(const struct emu_stream *stream)
{
    if (stream->context)
        return stream->context;
    return stream->device->index == emu_device_current() ? emu_context_current() : stream->device;
}

struct emu_stream *emu_stream_hold(struct emu_stream *stream)
{
    atomic_fetch_add(&stream->references, 1);
    return stream;
}

void emu_stream_release(struct emu_stream *stream)
{
    if (atomic_fetch_sub(&stream->references, 1) > 1)
        return;
    free(stream->tips);
    pthread_cond_destroy(&stream->progress);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

void emu_stream_unlink(struct emu_stream *stream)
{
    struct emu_stream **link;

    pthread_mutex_lock(&stream->device->streams_lock);
    for (link = &stream->device->streams; *link && *link != stream; link = &(*link)->next_of_device)
        ;
    if (*link)
        *link = stream->next_of_device;
    pthread_mutex_unlock(&stream->device->streams_lock);
}

/* Lets the stream end when it is drained. Until then it stays in the device's list: synchronizing
 * with the device waits for its work as well. */
static void close_stream(struct emu_stream *stream)
{
    bool running;

    pthread_mutex_lock(&stream->lock);
    stream->closed = true;
    running = stream->running;
    pthread_cond_signal(&stream->work);
    pthread_mutex_unlock(&stream->lock);
    if (!running)
        emu_stream_unlink(stream);
    emu_stream_release(stream);
}

int emu_stream_destroy(struct emu_stream *stream)
{
    emu_handles_remove(stream, HANDLE_STREAM);
    close_stream(stream);
    return 0;
}

int emu_stream_device(const struct emu_stream *stream)
{
    return stream->device->index;
}

/* With stream->lock held: queues a chain of items. Returns the last one's position. */
static uint64_t queue(struct emu_stream *stream, struct emu_item *first, struct emu_item *last)
{
    uint64_t position = atomic_load_explicit(&stream->pushed, memory_order_relaxed);

    for (struct emu_item *item = first; item; item = item->next)
        position++;
    if (stream->last)
        stream->last->next = first;
    else
        stream->first = first;
    stream->last = last;
    atomic_store(&stream->pushed, position);
    if (stream->sleeping)
        pthread_cond_signal(&stream->work);
    return position;
}

static void discard(struct emu_item *first)
{
    while (first) {
        struct emu_item *next = first->next;

        if (first->release)
            first->release(first->arg);
        free(first);
        first = next;
    }
}

int emu_stream_append(struct emu_stream *stream, const char *name, emu_work *run, void *arg,
                      void (*release)(void *), uint64_t *position)
{
    struct emu_item *item = malloc(sizeof(*item)), *first = NULL, *last = NULL;
    uint64_t at = 0;
    int error = 0;

    if (!item)
        return cudaErrorMemoryAllocation;
    *item = (struct emu_item){NULL, name, run, arg, release};
    pthread_mutex_lock(&stream->lock);
    if (stream->ended)
        error = cudaErrorInvalidResourceHandle;
    else if (!stream->running)
        error = emu_worker_start(stream);
    if (!error && !emu_order_before(stream, &first, &last))
        error = cudaErrorMemoryAllocation;
    if (!error) {
        if (last)
            last->next = item;
        else
            first = item;
        at = queue(stream, first, item);
    }
    pthread_mutex_unlock(&stream->lock);
    if (error) {
        discard(first);
        free(item);
    } else if (position) {
        *position = at;
    }
    return error;
}

int emu_stream_append_wait(struct emu_stream *stream, struct emu_stream *other, uint64_t position)
{
    struct emu_item *item;
    int error;

    if (other == stream || atomic_load(&other->done) >= position)
        return 0;
    item = emu_item_wait(stream, other, position);
    if (!item)
        return cudaErrorMemoryAllocation;
    error = emu_stream_append(stream, item->name, item->run, item->arg, item->release, NULL);
    if (error)
        discard(item);
    else
        free(item);
    return error;
}

/* A call that finds the queue full waits until there is room: a GPU's channel has a fixed number of
 * entries, too. */
static int wait_for_room(struct emu_stream *stream)
{
    uint64_t pushed = atomic_load(&stream->pushed);

    return pushed < EMU_QUEUE_MAX
               ? 0
               : emu_stream_wait_position(stream, pushed - EMU_QUEUE_MAX + 1, stream->device);
}

int emu_stream_push(struct emu_stream *stream, const char *name, emu_work *run, void *arg,
                    void (*release)(void *))
{
    int error = emu_process_check();

    if (error)
        return error;
    if (atomic_load(&stream->capture))
        return emu_capture_add(stream, name, run, arg, release);
    error = emu_capture_forbids(stream);
    if (!error)
        error = wait_for_room(stream);
    return error ? error : emu_stream_append(stream, name, run, arg, release, NULL);
}

int emu_stream_wait_position(struct emu_stream *stream, uint64_t position,
                             const struct emu_device *device)
{
    int error = 0;

    if (atomic_load(&stream->done) < position) {
        pthread_mutex_lock(&stream->lock);
        stream->waiters++;
        while (atomic_load(&stream->done) < position &&
               !(device && (error = atomic_load(&device->error))))
            pthread_cond_wait(&stream->progress, &stream->lock);
        stream->waiters--;
        pthread_mutex_unlock(&stream->lock);
    }
    return device ? atomic_load(&device->error) : 0;
}

static int run_marker(void *arg)
{
    (void)arg;
    return 0;
}

int emu_stream_synchronize(struct emu_stream *stream)
{
    uint64_t position = atomic_load(&stream->pushed);
    int error;

    if (stream->legacy && emu_order_pending(stream)) {
        error = emu_stream_append(stream, "synchronize", run_marker, NULL, NULL, &position);
        if (error)
            return error;
    }
    return emu_stream_wait_position(stream, position, stream->device);
}

int emu_stream_query(struct emu_stream *stream)
{
    int error = atomic_load(&stream->device->error);

    if (error)
        return error;
    if (atomic_load(&stream->done) < atomic_load(&stream->pushed))
        return cudaErrorNotReady;
    return stream->legacy && emu_order_pending(stream) ? cudaErrorNotReady : 0;
}

int emu_stream_synchronize_device(struct emu_device *device)
{
    struct emu_stream *stream;
    int error = 0;

    /* Stream by stream, beginning again after each wait: the list may have changed meanwhile. */
    do {
        pthread_mutex_lock(&device->streams_lock);
        for (stream = device->streams; stream; stream = stream->next_of_device)
            if (atomic_load(&stream->done) < atomic_load(&stream->pushed))
                break;
        if (stream)
            emu_stream_hold(stream);
        pthread_mutex_unlock(&device->streams_lock);
        if (stream) {
            error = emu_stream_wait_position(stream, atomic_load(&stream->pushed), device);
            emu_stream_release(stream);
        }
    } while (stream && !error);
    return error ? error
                 : emu_stream_wait_position(device->legacy, atomic_load(&device->legacy->pushed),
                                            device);
}

static void wake(struct emu_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    pthread_cond_broadcast(&stream->progress);
    pthread_mutex_unlock(&stream->lock);
}

void emu_stream_wake_device(struct emu_device *device)
{
    struct emu_stream *stream;

    wake(device->legacy);
    pthread_mutex_lock(&device->streams_lock);
    for (stream = device->streams; stream; stream = stream->next_of_device)
        wake(stream);
    pthread_mutex_unlock(&device->streams_lock);
}

enum { DRAIN_MS = 500 }; /* what a reset grants to work that is running */

/* Lets nothing more run on the stream. True if it is drained, false if something hangs. */
static bool drop_work(struct emu_stream *stream)
{
    struct timespec until;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += DRAIN_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    atomic_store(&stream->dropped, true);
    pthread_mutex_lock(&stream->lock);
    stream->waiters++;
    while (!late && atomic_load(&stream->done) < atomic_load(&stream->pushed))
        late = pthread_cond_timedwait(&stream->progress, &stream->lock, &until);
    stream->waiters--;
    pthread_mutex_unlock(&stream->lock);
    return !late;
}

static bool drop_legacy(struct emu_device *device)
{
    struct emu_stream *old = device->legacy, *fresh;

    if (drop_work(old)) {
        atomic_store(&old->dropped, false);
        return true;
    }
    fresh = make_stream(device, 0, 0, true);
    if (fresh) {
        device->legacy = fresh;
        close_stream(old);
    }
    return false;
}

bool emu_stream_abandon_device(struct emu_device *device)
{
    bool idle = drop_legacy(device);

    for (;;) {
        struct emu_stream *stream;

        pthread_mutex_lock(&device->streams_lock);
        stream = device->streams;
        if (stream) {
            device->streams = stream->next_of_device;
            emu_stream_hold(stream);
        }
        pthread_mutex_unlock(&device->streams_lock);
        if (!stream)
            return idle;
        idle = drop_work(stream) && idle;
        if (emu_handles_remove(stream, HANDLE_STREAM))
            close_stream(stream);
        emu_stream_release(stream);
    }
}
