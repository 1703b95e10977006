/* graph.c: the runtime's stream capture and graphs. */
#include "emu/core/graph.h"

#include <string.h>

#include "emu/core/capture.h"
#include "emu/core/conditional.h"
#include "emu/cudart/call.h"

STREAM_CALL(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
            (stream, mode))
{
    struct emu_stream *found;
    int error;

    if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
        return cudaErrorInvalidValue;
    return call_stream(stream, &found, &error) ? emu_capture_begin(found, mode) : error;
}

STREAM_CALL(cudaStreamBeginCaptureToGraph,
            (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
             const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),
            (stream, graph, dependencies, edges, count, mode))
{
    struct emu_node *const *nodes = (struct emu_node *const *)dependencies;
    struct emu_graph *into = emu_graph_find(graph);
    struct emu_stream *found;
    int error;

    (void)edges; /* an order that is allowed, if not the loosest */
    if ((unsigned)mode > cudaStreamCaptureModeRelaxed || !into || (count && !nodes) ||
        !emu_graph_has(into, nodes, count))
        return cudaErrorInvalidValue;
    return call_stream(stream, &found, &error)
               ? emu_capture_begin_in(found, mode, into, nodes, count)
               : error;
}

STREAM_CALL(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), (stream, graph))
{
    struct emu_stream *found;
    struct emu_graph *made;
    int error;

    if (!graph)
        return cudaErrorInvalidValue;
    if (!call_stream(stream, &found, &error))
        return error;
    error = emu_capture_end(found, &made);
    *graph = (cudaGraph_t)made;
    return error;
}

STREAM_CALL(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
            (stream, status))
{
    struct emu_capture_state state;
    struct emu_stream *found;
    int error;

    if (!status)
        return cudaErrorInvalidValue;
    if (!call_stream(stream, &found, &error))
        return error;
    if (emu_capture_forbids(found))
        return cudaErrorStreamCaptureImplicit;
    emu_capture_state(found, &state);
    *status = state.status;
    return cudaSuccess;
}

CALL(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), (mode))
{
    if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
        return cudaErrorInvalidValue;
    *mode = emu_capture_exchange_mode(*mode);
    return cudaSuccess;
}

CALL(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), (graph, flags))
{
    if (!graph || flags)
        return cudaErrorInvalidValue;
    *graph = (cudaGraph_t)emu_graph_create();
    return *graph ? cudaSuccess : cudaErrorMemoryAllocation;
}

CALL(cudaGraphDestroy, (cudaGraph_t graph), (graph))
{
    return emu_graph_destroy(graph);
}

CALL(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), (clone, graph))
{
    if (!clone || !emu_graph_find(graph))
        return cudaErrorInvalidValue;
    *clone = (cudaGraph_t)emu_graph_clone(emu_graph_find(graph));
    return *clone ? cudaSuccess : cudaErrorMemoryAllocation;
}

static int instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    if (!exec || !emu_graph_find(graph) ||
        flags & ~(unsigned long long)(cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                      cudaGraphInstantiateFlagUseNodePriority))
        return cudaErrorInvalidValue;
    *exec = (cudaGraphExec_t)emu_graph_instantiate(emu_graph_find(graph));
    return *exec ? cudaSuccess : cudaErrorMemoryAllocation;
}

CALL(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
     (exec, graph, flags))
{
    return instantiate(exec, graph, flags);
}

CALL(cudaGraphInstantiateWithFlags,
     (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags), (exec, graph, flags))
{
    return instantiate(exec, graph, flags);
}

CALL(cudaGraphExecDestroy, (cudaGraphExec_t exec), (exec))
{
    return emu_graph_exec_destroy(exec);
}

STREAM_CALL(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
{
    struct emu_stream *found;
    int error;

    if (!emu_graph_exec_find(exec))
        return cudaErrorInvalidValue;
    return call_stream(stream, &found, &error) ? emu_graph_launch(emu_graph_exec_find(exec), found)
                                               : error;
}

STREAM_CALL(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), (exec, stream))
{
    struct emu_stream *found;
    int error;

    if (!emu_graph_exec_find(exec))
        return cudaErrorInvalidValue;
    return call_stream(stream, &found, &error) ? cudaSuccess
                                               : error; /* an instance is ready once made */
}

/* Fills `out` (NULL: only counts) with nodes as CUDA does: at most *count, the rest with NULL. */
static void give_nodes(struct emu_node *const *nodes, size_t have, cudaGraphNode_t *out,
                       size_t *count)
{
    for (size_t i = 0; out && i < *count; i++)
        out[i] = i < have ? (cudaGraphNode_t)nodes[i] : NULL;
    if (!out || *count > have)
        *count = have;
}

CALL(cudaGraphGetNodes, (cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count),
     (handle, nodes, count))
{
    const struct emu_graph *graph = emu_graph_find(handle);

    if (!graph || !count)
        return cudaErrorInvalidValue;
    give_nodes(graph->nodes, graph->count, nodes, count);
    return cudaSuccess;
}

CALL(cudaGraphGetRootNodes, (cudaGraph_t handle, cudaGraphNode_t *nodes, size_t *count),
     (handle, nodes, count))
{
    const struct emu_graph *graph = emu_graph_find(handle);
    struct emu_node **roots;
    size_t have = 0;

    if (!graph || !count)
        return cudaErrorInvalidValue;
    roots = malloc((graph->count + 1) * sizeof(struct emu_node *));
    if (!roots)
        return cudaErrorMemoryAllocation;
    for (size_t i = 0; i < graph->count; i++)
        if (!graph->nodes[i]->dependency_count)
            roots[have++] = graph->nodes[i];
    give_nodes(roots, have, nodes, count);
    free(roots);
    return cudaSuccess;
}

/* By the call that made the node; what no runtime call made (a collective) is a kernel, as with
 * NCCL. */
CALL(cudaGraphNodeGetType, (cudaGraphNode_t handle, enum cudaGraphNodeType *type), (handle, type))
{
    const struct emu_node *node = (const struct emu_node *)handle;

    if (!node || !type)
        return cudaErrorInvalidValue;
    if (!strncmp(node->payload->name, "cudaMemcpy", strlen("cudaMemcpy")))
        *type = cudaGraphNodeTypeMemcpy;
    else if (!strncmp(node->payload->name, "cudaMemset", strlen("cudaMemset")))
        *type = cudaGraphNodeTypeMemset;
    else if (!strcmp(node->payload->name, "cudaLaunchHostFunc"))
        *type = cudaGraphNodeTypeHost;
    else if (!strcmp(node->payload->name, EMU_CONDITIONAL))
        *type = cudaGraphNodeTypeConditional;
    else
        *type = node->payload->run ? cudaGraphNodeTypeKernel : cudaGraphNodeTypeEmpty;
    return cudaSuccess;
}
