/* event.c: the driver's events. */
#include "emu/core/event.h"

#include "emu/driver/call.h"

CONTEXT_CALL(cuEventCreate, (CUevent * event, unsigned int flags), (event, flags))
{
    if (!event || flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING |
                                      CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_EVENT_INTERPROCESS) {
        emu_unsupported("CU_EVENT_INTERPROCESS",
                        "events of the emulated machine stay in their process");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *event = (CUevent)emu_event_create(flags);
    return *event ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER_CALL(cuEventDestroy_v2, (CUevent event), (event))
{
    return emu_event_find(event) ? emu_event_destroy(emu_event_find(event))
                                 : (int)CUDA_ERROR_INVALID_HANDLE;
}

static int driver_record_event(CUevent event, CUstream handle, unsigned flags)
{
    struct emu_stream *stream;
    int error;

    if (flags > CU_EVENT_RECORD_EXTERNAL || !emu_event_find(event))
        return flags > CU_EVENT_RECORD_EXTERNAL ? CUDA_ERROR_INVALID_VALUE
                                                : CUDA_ERROR_INVALID_HANDLE;
    return driver_stream(handle, &stream, &error) ? emu_event_record(emu_event_find(event), stream)
                                                  : error;
}

STREAM_CALL(cuEventRecord, cuEventRecord_ptsz, (CUevent event, CUstream stream), (event, stream))
{
    return driver_record_event(event, stream, 0);
}

STREAM_CALL(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz,
            (CUevent event, CUstream stream, unsigned int flags), (event, stream, flags))
{
    return driver_record_event(event, stream, flags);
}

DRIVER_CALL(cuEventQuery, (CUevent event), (event))
{
    return emu_event_find(event) ? emu_event_query(emu_event_find(event))
                                 : (int)CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_CALL(cuEventSynchronize, (CUevent event), (event))
{
    return emu_event_find(event) ? emu_event_synchronize(emu_event_find(event))
                                 : (int)CUDA_ERROR_INVALID_HANDLE;
}

DRIVER_CALL(cuEventElapsedTime_v2, (float *milliseconds, CUevent start, CUevent end),
            (milliseconds, start, end))
{
    if (!milliseconds)
        return CUDA_ERROR_INVALID_VALUE;
    if (!emu_event_find(start) || !emu_event_find(end))
        return CUDA_ERROR_INVALID_HANDLE;
    return emu_event_elapsed(emu_event_find(start), emu_event_find(end), milliseconds);
}
DRIVER_ALIAS("cuEventElapsedTime", "cuEventElapsedTime_v2");
