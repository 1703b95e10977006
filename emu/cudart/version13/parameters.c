/* parameters.c: functions whose parameters or structs are others in CUDA 13. */
#include <string.h>

#include "emu/core/attributes.h"
#include "emu/cudart/call.h"
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

CALL(cudaGraphAddNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
      const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *parameters),
     (node, graph, dependencies, edges, count, parameters))
{
    (void)edges;
    return version_add_node(node, graph, dependencies, count, parameters);
}

CALL_ANYTIME(cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device),
             (properties, device))
{
    const struct emu_device *found = emu_device_get(device);
    int value;

    if (!properties || !found)
        return properties ? cudaErrorInvalidDevice : cudaErrorInvalidValue;
    memset(properties, 0, sizeof(*properties));
    strcpy(properties->name, EMU_DEVICE_NAME);
    emu_device_uuid(found, (unsigned char *)properties->uuid.bytes);
    properties->totalGlobalMem = found->memory_limit;
    properties->deviceNumaId = properties->hostNumaId = -1;
#define PROPERTY(member, attribute)                      \
    if (!emu_device_attribute(found, attribute, &value)) \
        properties->member = value;
#include "emu/cudart/properties.def"
#undef PROPERTY
    return cudaSuccess;
}
