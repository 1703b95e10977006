/* hints.c: memory hints with the parameters of CUDA 13. */
#include "emu/cudart/versions.h"

/* The device number of a location; what is not a device is the host. */
static int device_of_location(struct cudaMemLocation location)
{
    return location.type == cudaMemLocationTypeDevice ? location.id : cudaCpuDeviceId;
}

CALL(cudaMemAdvise,
     (const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
      struct cudaMemLocation location),
     (pointer, bytes, advice, location))
{
    return version_advise(pointer, bytes, advice, device_of_location(location));
}

STREAM_CALL(cudaMemPrefetchAsync,
            (const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned int flags,
             cudaStream_t stream),
            (pointer, bytes, location, flags, stream))
{
    return flags ? cudaErrorInvalidValue
                 : version_prefetch(pointer, bytes, device_of_location(location), stream);
}

STREAM_CALL(cudaStreamGetCaptureInfo,
            (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
             cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
             size_t *count),
            (stream, status, id, graph, nodes, edges, count))
{
    if (edges)
        *edges = NULL; /* all edges are plain ones */
    return version_capture_info(stream, status, id, graph, nodes, count);
}
