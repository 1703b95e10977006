/* order.c: the legacy default stream (CUDA programming guide, "Default Stream"; runtime API,
 * "Stream synchronization behavior"): work on it waits for all work that was issued before on the
 * device's blocking streams, and work issued later on those waits for it. Non-blocking streams take
 * no part.
 */
#include <driver_types.h>
#include <stdlib.h>

#include "emu/core/device.h"
#include "emu/core/process.h"
#include "emu/core/stream.h"

struct wait {
    struct emu_stream *stream;
    uint64_t position;
    const struct emu_device *device; /* of the stream that waits: its failure ends the wait */
};

static int run_wait(void *arg)
{
    const struct wait *wait = arg;

    emu_stream_wait_position(wait->stream, wait->position, wait->device);
    return 0;
}

static void release_wait(void *arg)
{
    struct wait *wait = arg;

    emu_stream_release(wait->stream);
    free(wait);
}

struct emu_item *emu_item_wait(struct emu_stream *waiting, struct emu_stream *stream,
                               uint64_t position)
{
    struct emu_item *item = malloc(sizeof(*item));
    struct wait *wait = malloc(sizeof(*wait));

    if (!item || !wait) {
        free(item);
        free(wait);
        return NULL;
    }
    *wait = (struct wait){emu_stream_hold(stream), position, waiting->device};
    *item = (struct emu_item){NULL, "wait", run_wait, wait, release_wait};
    return item;
}

static bool behind(struct emu_stream *stream, struct emu_stream *other, uint64_t position,
                   struct emu_item **first, struct emu_item **last)
{
    struct emu_item *item = emu_item_wait(stream, other, position);

    if (!item)
        return false;
    if (*last)
        (*last)->next = item;
    else
        *first = item;
    *last = item;
    return true;
}

bool emu_order_before(struct emu_stream *stream, struct emu_item **first, struct emu_item **last)
{
    struct emu_stream *legacy = stream->device->legacy, *other;
    uint64_t position;
    bool made = true;

    if (stream->flags & cudaStreamNonBlocking)
        return true;
    if (!stream->legacy) {
        position = atomic_load(&legacy->pushed);
        if (position <= stream->behind_legacy || position <= atomic_load(&legacy->done))
            return true;
        stream->behind_legacy = position;
        return behind(stream, legacy, position, first, last);
    }
    pthread_mutex_lock(&stream->device->streams_lock);
    for (other = stream->device->streams; other && made; other = other->next_of_device) {
        position = atomic_load(&other->pushed);
        if (!(other->flags & cudaStreamNonBlocking) && position > atomic_load(&other->done))
            made = behind(stream, other, position, first, last);
    }
    pthread_mutex_unlock(&stream->device->streams_lock);
    return made;
}

bool emu_order_pending(struct emu_stream *stream)
{
    struct emu_stream *other;

    pthread_mutex_lock(&stream->device->streams_lock);
    for (other = stream->device->streams; other; other = other->next_of_device)
        if (!(other->flags & cudaStreamNonBlocking) &&
            atomic_load(&other->pushed) > atomic_load(&other->done))
            break;
    pthread_mutex_unlock(&stream->device->streams_lock);
    return other != NULL;
}
