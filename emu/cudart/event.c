/* event.c: the runtime's events. */
#include "emu/core/event.h"

#include "emu/cudart/call.h"

static int create_event(cudaEvent_t *event, unsigned flags)
{
    if (!event ||
        flags & ~(unsigned)(cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess))
        return cudaErrorInvalidValue;
    if (flags & cudaEventInterprocess) {
        emu_unsupported("cudaEventInterprocess",
                        "events of the emulated machine stay in their process");
        return cudaErrorNotSupported;
    }
    *event = (cudaEvent_t)emu_event_create(flags);
    return *event ? cudaSuccess : cudaErrorMemoryAllocation;
}

CALL(cudaEventCreate, (cudaEvent_t * event), (event))
{
    return create_event(event, cudaEventDefault);
}

CALL(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), (event, flags))
{
    return create_event(event, flags);
}

CALL(cudaEventDestroy, (cudaEvent_t event), (event))
{
    return emu_event_find(event) ? emu_event_destroy(emu_event_find(event))
                                 : cudaErrorInvalidResourceHandle;
}

static int record_event(cudaEvent_t event, cudaStream_t handle, unsigned flags)
{
    struct emu_stream *stream;
    int error;

    if (flags > cudaEventRecordExternal)
        return cudaErrorInvalidValue;
    if (!emu_event_find(event))
        return cudaErrorInvalidResourceHandle;
    return call_stream(handle, &stream, &error) ? emu_event_record(emu_event_find(event), stream)
                                                : error;
}

STREAM_CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
{
    return record_event(event, stream, 0);
}

STREAM_CALL(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
            (event, stream, flags))
{
    return record_event(event, stream, flags);
}

CALL(cudaEventQuery, (cudaEvent_t event), (event))
{
    return emu_event_find(event) ? emu_event_query(emu_event_find(event))
                                 : cudaErrorInvalidResourceHandle;
}

CALL(cudaEventSynchronize, (cudaEvent_t event), (event))
{
    return emu_event_find(event) ? emu_event_synchronize(emu_event_find(event))
                                 : cudaErrorInvalidResourceHandle;
}

CALL(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end),
     (milliseconds, start, end))
{
    if (!milliseconds)
        return cudaErrorInvalidValue;
    if (!emu_event_find(start) || !emu_event_find(end))
        return cudaErrorInvalidResourceHandle;
    return emu_event_elapsed(emu_event_find(start), emu_event_find(end), milliseconds);
}
