/* versions.c: the work behind functions whose parameters differ between CUDA 12 and 13. */
#include "emu/cudart/versions.h"

#include "emu/core/capture.h"
#include "emu/core/memory.h"

static int check_hint(const void *pointer, size_t bytes, int device)
{
    struct emu_range range;

    if (!bytes || !emu_memory_look_up(pointer, &range, NULL) || range.kind != EMU_MEMORY_MANAGED)
        return cudaErrorInvalidValue;
    return device == cudaCpuDeviceId || emu_device_get(device) ? cudaSuccess
                                                               : cudaErrorInvalidDevice;
}

int version_advise(const void *pointer, size_t bytes, int advice, int device)
{
    if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy)
        return cudaErrorInvalidValue;
    return check_hint(pointer, bytes, device);
}

int version_prefetch(const void *pointer, size_t bytes, int device, cudaStream_t stream)
{
    struct emu_stream *found;
    int error;

    return call_stream(stream, &found, &error) ? check_hint(pointer, bytes, device) : error;
}

int version_capture_info(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                         unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **nodes,
                         size_t *count)
{
    struct emu_capture_state state;
    struct emu_stream *found;
    int error;

    if (!status || !call_stream(stream, &found, &error))
        return status ? error : cudaErrorInvalidValue;
    if (emu_capture_forbids(found))
        return cudaErrorStreamCaptureImplicit;
    emu_capture_state(found, &state);
    *status = state.status;
    if (id)
        *id = state.id;
    if (graph)
        *graph = (cudaGraph_t)state.graph;
    if (nodes)
        *nodes = (const cudaGraphNode_t *)state.tips;
    if (count)
        *count = state.tip_count;
    return cudaSuccess;
}
