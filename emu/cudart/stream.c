/* stream.c: the runtime's streams. */
#include "emu/core/stream.h"

#include <stdint.h>

#include "emu/core/capture.h"
#include "emu/core/event.h"
#include "emu/core/handles.h"
#include "emu/core/worker.h"
#include "emu/cudart/call.h"

enum { GREATEST_PRIORITY = -5 };

static int create_stream(cudaStream_t *stream, unsigned flags, int priority)
{
    if (!stream || flags > cudaStreamNonBlocking)
        return cudaErrorInvalidValue;
    if (priority > 0)
        priority = 0;
    if (priority < GREATEST_PRIORITY)
        priority = GREATEST_PRIORITY;
    *stream = (cudaStream_t)emu_stream_create_here(flags, priority);
    return *stream ? cudaSuccess : cudaErrorMemoryAllocation;
}

CALL(cudaStreamCreate, (cudaStream_t * stream), (stream))
{
    return create_stream(stream, cudaStreamDefault, 0);
}

CALL(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags), (stream, flags))
{
    return create_stream(stream, flags, 0);
}

CALL(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
     (stream, flags, priority))
{
    return create_stream(stream, flags, priority);
}

CALL(cudaStreamDestroy, (cudaStream_t stream), (stream))
{
    if ((uintptr_t)stream <= (uintptr_t)cudaStreamPerThread ||
        emu_handles_kind(stream) != HANDLE_STREAM)
        return cudaErrorInvalidResourceHandle;
    if (emu_stream_is_capturing((struct emu_stream *)stream))
        return emu_capture_forbids_wait((struct emu_stream *)stream);
    return emu_stream_destroy((struct emu_stream *)stream);
}

STREAM_CALL(cudaStreamSynchronize, (cudaStream_t stream), (stream))
{
    struct emu_stream *found;
    int error;

    if (!call_stream(stream, &found, &error))
        return error;
    error = emu_capture_forbids_wait(found);
    return error ? error : emu_stream_synchronize(found);
}

STREAM_CALL(cudaStreamQuery, (cudaStream_t stream), (stream))
{
    struct emu_stream *found;
    int error;

    if (!call_stream(stream, &found, &error))
        return error;
    error = emu_capture_forbids_wait(found);
    return error ? error : emu_stream_query(found);
}

STREAM_CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
            (stream, event, flags))
{
    struct emu_stream *found;
    int error;

    if (!call_stream(stream, &found, &error))
        return error;
    if (!emu_event_find(event) || flags > cudaEventWaitExternal)
        return flags > cudaEventWaitExternal ? cudaErrorInvalidValue
                                             : cudaErrorInvalidResourceHandle;
    return emu_stream_wait_event(found, emu_event_find(event));
}

STREAM_CALL(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags), (stream, flags))
{
    struct emu_stream *found;
    int error;

    if (!flags || !call_stream(stream, &found, &error))
        return flags ? error : cudaErrorInvalidValue;
    *flags = found->flags;
    return cudaSuccess;
}

STREAM_CALL(cudaStreamGetPriority, (cudaStream_t stream, int *priority), (stream, priority))
{
    struct emu_stream *found;
    int error;

    if (!priority || !call_stream(stream, &found, &error))
        return priority ? error : cudaErrorInvalidValue;
    *priority = found->priority;
    return cudaSuccess;
}

STREAM_CALL(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), (stream, id))
{
    struct emu_stream *found;
    int error;

    if (!id || !call_stream(stream, &found, &error))
        return id ? error : cudaErrorInvalidValue;
    *id = found->id;
    return cudaSuccess;
}

STREAM_CALL(cudaStreamGetDevice, (cudaStream_t stream, int *device), (stream, device))
{
    struct emu_stream *found;
    int error;

    if (!device || !call_stream(stream, &found, &error))
        return device ? error : cudaErrorInvalidValue;
    *device = emu_stream_device(found);
    return cudaSuccess;
}

STREAM_CALL(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
            (stream, function, data))
{
    const struct emu_host_call call = {.function = function, .data = data};
    struct emu_stream *found;
    int error;

    if (!function)
        return cudaErrorInvalidValue;
    return call_stream(stream, &found, &error) ? emu_host_call(found, &call, "cudaLaunchHostFunc")
                                               : error;
}

STREAM_CALL(cudaStreamAddCallback,
            (cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned int flags),
            (stream, callback, data, flags))
{
    const struct emu_host_call call = {
        .callback = (void (*)(void *, int, void *))callback, .stream = stream, .data = data};
    struct emu_stream *found;
    int error;

    if (!callback || flags)
        return cudaErrorInvalidValue;
    return call_stream(stream, &found, &error)
               ? emu_host_call(found, &call, "cudaStreamAddCallback")
               : error;
}

STREAM_CALL(cudaStreamAttachMemAsync,
            (cudaStream_t stream, void *pointer, size_t bytes, unsigned int flags),
            (stream, pointer, bytes, flags))
{
    struct emu_stream *found;
    int error;

    (void)bytes;
    (void)flags; /* managed memory is the host's: everyone sees it at any time */
    return pointer && !call_stream(stream, &found, &error) ? error : cudaSuccess;
}
