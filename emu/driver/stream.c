/* stream.c: the driver's streams. */
#include "emu/core/stream.h"

#include <driver_types.h>
#include <stdint.h>

#include "emu/core/capture.h"
#include "emu/core/event.h"
#include "emu/core/graph.h"
#include "emu/core/handles.h"
#include "emu/core/worker.h"
#include "emu/driver/call.h"
#include "emu/driver/context.h"

static int driver_create_stream(CUstream *stream, unsigned flags, int priority)
{
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    if (priority > 0)
        priority = 0;
    if (priority < -5)
        priority = -5;
    *stream = (CUstream)emu_stream_create_here(flags, priority);
    return *stream ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

CONTEXT_CALL(cuStreamCreate, (CUstream * stream, unsigned int flags), (stream, flags))
{
    return driver_create_stream(stream, flags, 0);
}

CONTEXT_CALL(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority),
             (stream, flags, priority))
{
    return driver_create_stream(stream, flags, priority);
}

CONTEXT_CALL(cuStreamDestroy_v2, (CUstream stream), (stream))
{
    if ((uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD ||
        emu_handles_kind(stream) != HANDLE_STREAM)
        return CUDA_ERROR_INVALID_HANDLE;
    if (emu_stream_is_capturing((struct emu_stream *)stream))
        return emu_capture_forbids_wait((struct emu_stream *)stream);
    return emu_stream_destroy((struct emu_stream *)stream);
}

/* What asks or waits for a stream's end; a stream that is capturing has none. */
static int query_stream(CUstream stream, int (*question)(struct emu_stream *))
{
    struct emu_stream *found;
    int error;

    if (!driver_stream(stream, &found, &error))
        return error;
    error = emu_capture_forbids_wait(found);
    return error ? error : question(found);
}

STREAM_CALL(cuStreamSynchronize, cuStreamSynchronize_ptsz, (CUstream stream), (stream))
{
    return query_stream(stream, emu_stream_synchronize);
}

STREAM_CALL(cuStreamQuery, cuStreamQuery_ptsz, (CUstream stream), (stream))
{
    return query_stream(stream, emu_stream_query);
}

STREAM_CALL(cuStreamWaitEvent, cuStreamWaitEvent_ptsz,
            (CUstream stream, CUevent event, unsigned int flags), (stream, event, flags))
{
    struct emu_stream *found;
    int error;

    if (flags > CU_EVENT_WAIT_EXTERNAL || !emu_event_find(event))
        return flags > CU_EVENT_WAIT_EXTERNAL ? CUDA_ERROR_INVALID_VALUE
                                              : CUDA_ERROR_INVALID_HANDLE;
    return driver_stream(stream, &found, &error)
               ? emu_stream_wait_event(found, emu_event_find(event))
               : error;
}

/* A question about a stream: `type *out` gets `value`, an expression of `found`. */
#define STREAM_QUESTION(symbol, type, value)                                         \
    STREAM_CALL(symbol, symbol##_ptsz, (CUstream stream, type * out), (stream, out)) \
    {                                                                                \
        struct emu_stream *found;                                                    \
        int error;                                                                   \
                                                                                     \
        if (!out)                                                                    \
            return CUDA_ERROR_INVALID_VALUE;                                         \
        if (!driver_stream(stream, &found, &error))                                  \
            return error;                                                            \
        *out = value;                                                                \
        return 0;                                                                    \
    }

STREAM_QUESTION(cuStreamGetCtx, CUcontext, context_of_stream(found))
STREAM_QUESTION(cuStreamGetDevice, CUdevice, emu_stream_device(found))
STREAM_QUESTION(cuStreamGetFlags, unsigned int, found->flags)
STREAM_QUESTION(cuStreamGetPriority, int, found->priority)
STREAM_QUESTION(cuStreamGetId, unsigned long long, found->id)

/* What the capture of a stream has come to. */
static int capture_status(CUstream stream, CUstreamCaptureStatus *status,
                          struct emu_capture_state *state)
{
    struct emu_stream *found;
    int error;

    if (!status || !driver_stream(stream, &found, &error))
        return status ? error : (int)CUDA_ERROR_INVALID_VALUE;
    if (emu_capture_forbids(found))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    emu_capture_state(found, state);
    *status = (CUstreamCaptureStatus)state->status;
    return 0;
}

STREAM_CALL(cuStreamIsCapturing, cuStreamIsCapturing_ptsz,
            (CUstream stream, CUstreamCaptureStatus *status), (stream, status))
{
    struct emu_capture_state state;

    return capture_status(stream, status, &state);
}

STREAM_CALL(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz,
            (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
             const CUgraphNode **nodes, size_t *count),
            (stream, status, id, graph, nodes, count))
{
    struct emu_capture_state state;
    int error = capture_status(stream, status, &state);

    if (error)
        return error;
    if (id)
        *id = state.id;
    if (graph)
        *graph = (CUgraph)state.graph;
    if (nodes)
        *nodes = (const CUgraphNode *)state.tips;
    if (count)
        *count = state.tip_count;
    return 0;
}

DRIVER_CALL(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode))
{
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = (CUstreamCaptureMode)emu_capture_exchange_mode((int)*mode);
    return 0;
}

STREAM_CALL(cuLaunchHostFunc, cuLaunchHostFunc_ptsz,
            (CUstream stream, CUhostFn function, void *data), (stream, function, data))
{
    const struct emu_host_call call = {.function = function, .data = data};
    struct emu_stream *found;
    int error;

    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_stream(stream, &found, &error) ? emu_host_call(found, &call, "cudaLaunchHostFunc")
                                                 : error;
}
