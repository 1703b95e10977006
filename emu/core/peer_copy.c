/* peer_copy.c: copies between devices. cudaMemcpyPeer "is asynchronous with respect to the host,
 * but serialized with respect to all pending and future asynchronous work" of the current device
 * and both devices of the copy (runtime API, cudaMemcpyPeer): it waits for every stream of theirs,
 * and every stream of theirs waits for it. */
#include <driver_types.h>
#include <stdlib.h>

#include "emu/core/copy.h"
#include "emu/core/device.h"
#include "emu/core/stream.h"

/* The streams of a device, each with a reference, the legacy one first. NULL: no memory. */
static struct emu_stream **streams_of(struct emu_device *device, size_t *count)
{
    struct emu_stream **streams;

    *count = 1;
    pthread_mutex_lock(&device->streams_lock);
    for (const struct emu_stream *stream = device->streams; stream; stream = stream->next_of_device)
        ++*count;
    streams = malloc(*count * sizeof(struct emu_stream *));
    if (streams) {
        struct emu_stream **next = streams;

        *next++ = emu_stream_hold(device->legacy);
        for (struct emu_stream *stream = device->streams; stream; stream = stream->next_of_device)
            *next++ = emu_stream_hold(stream);
    }
    pthread_mutex_unlock(&device->streams_lock);
    return streams;
}

/* Puts the copying stream behind all of the device's streams, or all of them behind it. */
static int order_peer_streams(struct emu_device *device, struct emu_stream *copying, bool before)
{
    size_t count;
    struct emu_stream **streams = streams_of(device, &count);
    int error = streams ? 0 : cudaErrorMemoryAllocation;

    for (size_t i = 0; streams && i < count; i++) {
        struct emu_stream *waits = before ? copying : streams[i];
        struct emu_stream *goes_on = before ? streams[i] : copying;

        if (!error && !atomic_load(&streams[i]->capture))
            error = emu_stream_append_wait(waits, goes_on, atomic_load(&goes_on->pushed));
        if (error == cudaErrorInvalidResourceHandle)
            error = 0; /* it ended meanwhile: nothing more will run there */
        emu_stream_release(streams[i]);
    }
    free(streams);
    return error;
}

int emu_copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    struct emu_copy copy = emu_copy_plain(to, from, bytes, cudaMemcpyDefault);
    struct emu_device *devices[] = {emu_device_here(), emu_device_get(to_device),
                                    emu_device_get(from_device)};
    struct emu_stream *copying;
    int error = 0;

    if (!devices[1] || !devices[2])
        return cudaErrorInvalidDevice;
    copying = devices[0]->legacy;
    copy.peer = true;
    for (int i = 0; i < 3 && !error; i++)
        error = order_peer_streams(devices[i], copying, true);
    if (!error)
        error = emu_copy(copying, &copy, false, "cudaMemcpyPeer");
    for (int i = 0; i < 3 && !error; i++)
        error = order_peer_streams(devices[i], copying, false);
    return error;
}
