/* graph.c: the driver's stream capture, and the graphs that it fills. */
#include "emu/core/graph.h"

#include "emu/core/capture.h"
#include "emu/driver/call.h"

STREAM_CALL(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz,
            (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
{
    struct emu_stream *found;
    int error;

    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    return driver_stream(stream, &found, &error) ? emu_capture_begin(found, (int)mode) : error;
}

STREAM_CALL(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz,
            (CUstream stream, CUgraph graph, const CUgraphNode *dependencies,
             const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
            (stream, graph, dependencies, edges, count, mode))
{
    struct emu_node *const *nodes = (struct emu_node *const *)dependencies;
    struct emu_graph *into = emu_graph_find(graph);
    struct emu_stream *found;
    int error;

    (void)edges; /* an order that is allowed, if not the loosest */
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED || !into || (count && !nodes) ||
        !emu_graph_has(into, nodes, count))
        return CUDA_ERROR_INVALID_VALUE;
    return driver_stream(stream, &found, &error)
               ? emu_capture_begin_in(found, (int)mode, into, nodes, count)
               : error;
}

STREAM_CALL(cuStreamEndCapture, cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *graph),
            (stream, graph))
{
    struct emu_stream *found;
    struct emu_graph *made;
    int error;

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_stream(stream, &found, &error))
        return error;
    error = emu_capture_end(found, &made);
    *graph = (CUgraph)made;
    return error;
}

DRIVER_CALL(cuGraphCreate, (CUgraph * graph, unsigned int flags), (graph, flags))
{
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = (CUgraph)emu_graph_create();
    return *graph ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

DRIVER_CALL(cuGraphDestroy, (CUgraph graph), (graph))
{
    return emu_graph_destroy(graph);
}
