/* find.c: finds the stream that a handle means: cudaStream_t and CUstream are the same pointers. */
#include <driver_types.h>
#include <stdlib.h>

#include "emu/core/device.h"
#include "emu/core/handles.h"
#include "emu/core/process.h"
#include "emu/core/stream.h"

/* The calling thread's own default streams, one for each device it used them on. */
struct own_streams {
    struct emu_stream *of_device[EMU_MAX_DEVICES];
};

static pthread_key_t own_key;
static bool own_key_made;

static void drop_own(void *arg)
{
    struct own_streams *own = arg;

    for (int i = 0; i < EMU_MAX_DEVICES; i++)
        if (own->of_device[i] && emu_handles_remove(own->of_device[i], HANDLE_STREAM))
            emu_stream_destroy(own->of_device[i]);
    free(own);
}

static void make_reason_key(void)
{
    own_key_made = !pthread_key_create(&own_key, drop_own);
}

static struct emu_stream *find_own(struct emu_device *device)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct own_streams *own;
    struct emu_stream **stream;

    pthread_once(&once, make_reason_key);
    if (!own_key_made)
        return NULL;
    own = pthread_getspecific(own_key);
    if (!own) {
        own = calloc(1, sizeof(*own));
        if (!own || pthread_setspecific(own_key, own)) {
            free(own);
            return NULL;
        }
    }
    stream = &own->of_device[device->index];
    if (!*stream || emu_handles_kind(*stream) != HANDLE_STREAM) /* a device reset ends it */
        *stream = emu_stream_create(device, 0, 0);
    return *stream;
}

struct emu_stream *emu_stream_find(void *handle)
{
    struct emu_device *device;

    if (emu_process_check())
        return NULL;
    if ((uintptr_t)handle > (uintptr_t)cudaStreamPerThread)
        return emu_handles_kind(handle) == HANDLE_STREAM ? handle : NULL;
    device = emu_device_here();
    if (!device)
        return NULL;
    return handle == cudaStreamPerThread ? find_own(device) : device->legacy;
}
