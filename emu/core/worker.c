/* worker.c: the thread that does the work of a stream, and host functions as such work. */
#include "emu/core/worker.h"

#include <driver_types.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "emu/core.h"
#include "emu/core/device.h"
#include "emu/core/process.h"
#include "emu/core/stream.h"

/* On a failed device nothing runs any more, but every item is released, so that streams of other
 * devices that wait for this one go on. */
static void work_off(const struct emu_stream *stream, struct emu_item *item)
{
    int error = 0;

    if (!atomic_load(&stream->device->error) && !atomic_load(&stream->dropped))
        error = item->run(item->arg);
    if (error)
        emu_device_fail(stream->device->index, error);
    if (item->release)
        item->release(item->arg);
    free(item);
}

/* With stream->lock held: the next item, or NULL when the stream is closed and drained. */
static struct emu_item *next_stream_item(struct emu_stream *stream)
{
    struct emu_item *item;

    while (!stream->first && !stream->closed) {
        stream->sleeping = true;
        pthread_cond_wait(&stream->work, &stream->lock);
        stream->sleeping = false;
    }
    item = stream->first;
    if (item) {
        stream->first = item->next;
        if (!stream->first)
            stream->last = NULL;
    }
    return item;
}

static void *worker(void *arg)
{
    struct emu_stream *stream = arg;
    struct emu_item *item;
    char name[16];

    snprintf(name, sizeof(name), "emu d%d s%u", stream->device->index,
             (unsigned)stream->id % 10000);
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&stream->lock);
    while ((item = next_stream_item(stream))) {
        pthread_mutex_unlock(&stream->lock);
        work_off(stream, item);
        pthread_mutex_lock(&stream->lock);
        atomic_fetch_add(&stream->done, 1);
        if (stream->waiters)
            pthread_cond_broadcast(&stream->progress);
    }
    stream->ended = true;
    pthread_mutex_unlock(&stream->lock);
    emu_stream_unlink(stream);
    emu_stream_release(stream);
    return NULL;
}

int emu_worker_start(struct emu_stream *stream)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    int failed;

    /* Signals are the program's: none of them may run its handlers on our threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    emu_stream_hold(stream);
    failed = pthread_create(&thread, &attributes, worker, stream);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        emu_stream_release(stream);
        return cudaErrorMemoryAllocation;
    }
    stream->running = true;
    return 0;
}

static int run_host_call(void *arg)
{
    const struct emu_host_call *call = arg;

    emu_process_callback(true);
    if (call->function)
        call->function(call->data);
    else
        call->callback(call->stream, 0, call->data);
    emu_process_callback(false);
    return 0;
}

int emu_host_call(struct emu_stream *stream, const struct emu_host_call *model, const char *name)
{
    struct emu_host_call *call = malloc(sizeof(*call));
    int error;

    if (!call)
        return cudaErrorMemoryAllocation;
    *call = *model;
    error = emu_stream_push(stream, name, run_host_call, call, free);
    if (error)
        free(call);
    return error;
}
