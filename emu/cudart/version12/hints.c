/* hints.c: memory hints, captures and graph nodes with the parameters of CUDA 12, and names that
 * only CUDA 12 exports. The headers at hand are those of CUDA 13, so functions that have another
 * prototype there are defined under a name of ours and exported under CUDA's. */
#include "emu/core/event.h"
#include "emu/core/stream.h"
#include "emu/cudart/call.h"
#include "emu/cudart/versions.h"

/* Defines the function `own` with the symbol `name`. */
#define CALL_AS(name, own, parameters, arguments) \
    cudaError_t own parameters __asm__(#name);    \
    CALL(own, parameters, arguments)
#define STREAM_CALL_AS(name, own, parameters, arguments)      \
    cudaError_t own parameters __asm__(#name);                \
    cudaError_t own##_ptsz parameters __asm__(#name "_ptsz"); \
    STREAM_CALL(own, parameters, arguments)

CALL_AS(cudaMemAdvise, advise,
        (const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device),
        (pointer, bytes, advice, device))
{
    return version_advise(pointer, bytes, advice, device);
}

CALL_AS(cudaMemAdvise_v2, advise_location,
        (const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
         struct cudaMemLocation location),
        (pointer, bytes, advice, location))
{
    int device = location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId;

    return version_advise(pointer, bytes, advice, device);
}

STREAM_CALL_AS(cudaMemPrefetchAsync, prefetch,
               (const void *pointer, size_t bytes, int device, cudaStream_t stream),
               (pointer, bytes, device, stream))
{
    return version_prefetch(pointer, bytes, device, stream);
}

STREAM_CALL_AS(cudaMemPrefetchAsync_v2, prefetch_location,
               (const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned flags,
                cudaStream_t stream),
               (pointer, bytes, location, flags, stream))
{
    int device = location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId;

    return flags ? cudaErrorInvalidValue : version_prefetch(pointer, bytes, device, stream);
}

STREAM_CALL_AS(cudaStreamGetCaptureInfo_v2, capture_info,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count),
               (stream, status, id, graph, nodes, count))
{
    return version_capture_info(stream, status, id, graph, nodes, count);
}

STREAM_CALL_AS(cudaStreamGetCaptureInfo_v3, capture_info_edges,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                size_t *count),
               (stream, status, id, graph, nodes, edges, count))
{
    if (edges)
        *edges = NULL; /* all edges are plain ones */
    return version_capture_info(stream, status, id, graph, nodes, count);
}

STREAM_CALL_AS(cudaStreamGetCaptureInfo, capture_id,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id),
               (stream, status, id))
{
    return version_capture_info(stream, status, id, NULL, NULL, NULL);
}

CALL_AS(cudaGraphAddNode, add_node,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
         size_t count, struct cudaGraphNodeParams *parameters),
        (node, graph, dependencies, count, parameters))
{
    return version_add_node(node, graph, dependencies, count, parameters);
}

CALL_AS(cudaGraphAddNode_v2, add_node_edges,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
         const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *parameters),
        (node, graph, dependencies, edges, count, parameters))
{
    (void)edges;
    return version_add_node(node, graph, dependencies, count, parameters);
}

CALL(cudaEventElapsedTime_v2, (float *milliseconds, cudaEvent_t start, cudaEvent_t end),
     (milliseconds, start, end))
{
    if (!milliseconds)
        return cudaErrorInvalidValue;
    if (!emu_event_find(start) || !emu_event_find(end))
        return cudaErrorInvalidResourceHandle;
    return emu_event_elapsed(emu_event_find(start), emu_event_find(end), milliseconds);
}

CALL(cudaThreadSynchronize, (void), ())
{
    return emu_stream_synchronize_device(emu_device_here());
}
