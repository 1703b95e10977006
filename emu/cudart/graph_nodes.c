/* graph_nodes.c: nodes that a program adds itself. Each is created by capturing the call of the
 * same meaning on a stream of its own, and then moved into the program's graph.
 */
#include "emu/core/capture.h"
#include "emu/core/graph.h"
#include "emu/core/stream.h"
#include "emu/cudart/call.h"

struct node_position {
    cudaGraphNode_t *node;
    cudaGraph_t graph;
    const cudaGraphNode_t *dependencies;
    size_t count;
};

static int check_position(const struct node_position *place)
{
    return place->node && emu_graph_find(place->graph) && (place->dependencies || !place->count)
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

static int put_node(const struct node_position *place, struct emu_node *node)
{
    *place->node = (cudaGraphNode_t)node;
    return node ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* The payload of the one node that `issue` captures. */
static int capture_one(const struct node_position *place,
                       cudaError_t (*issue)(cudaStream_t stream, const void *parameters),
                       const void *parameters)
{
    struct emu_stream *stream = emu_stream_create(emu_device_here(), cudaStreamNonBlocking, 0);
    struct emu_graph *made = NULL;
    int error, ended;

    if (!stream)
        return cudaErrorMemoryAllocation;
    error = emu_capture_begin(stream, cudaStreamCaptureModeRelaxed);
    if (!error) {
        error = issue((cudaStream_t)stream, parameters);
        ended = emu_capture_end(stream, &made);
        error = error ? error : ended;
    }
    if (!error && made->count != 1)
        error = cudaErrorInvalidValue;
    if (!error)
        error = put_node(place, emu_graph_share(emu_graph_find(place->graph),
                                                (struct emu_node *const *)place->dependencies,
                                                place->count, made->nodes[0]->payload));
    if (made)
        emu_graph_destroy(made);
    emu_stream_destroy(stream);
    return error;
}

static cudaError_t issue_kernel(cudaStream_t stream, const void *parameters)
{
    const struct cudaKernelNodeParams *p = parameters;

    return cudaLaunchKernel(p->func, p->gridDim, p->blockDim, p->kernelParams, p->sharedMemBytes,
                            stream);
}

CALL(cudaGraphAddKernelNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
      const struct cudaKernelNodeParams *parameters),
     (node, graph, dependencies, count, parameters))
{
    const struct node_position place = {node, graph, dependencies, count};
    int error = parameters && !parameters->extra ? check_position(&place)
                                                 : (int)cudaErrorInvalidValue;

    return error ? error : capture_one(&place, issue_kernel, parameters);
}

struct copy {
    void *to;
    const void *from;
    size_t bytes;
    enum cudaMemcpyKind kind;
};

static cudaError_t issue_copy(cudaStream_t stream, const void *parameters)
{
    const struct copy *copy = parameters;

    return cudaMemcpyAsync(copy->to, copy->from, copy->bytes, copy->kind, stream);
}

CALL(cudaGraphAddMemcpyNode1D,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
      void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind),
     (node, graph, dependencies, count, to, from, bytes, kind))
{
    const struct node_position place = {node, graph, dependencies, count};
    const struct copy copy = {to, from, bytes, kind};
    int error = check_position(&place);

    return error ? error : capture_one(&place, issue_copy, &copy);
}

static cudaError_t issue_box(cudaStream_t stream, const void *parameters)
{
    return cudaMemcpy3DAsync(parameters, stream);
}

CALL(cudaGraphAddMemcpyNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
      const struct cudaMemcpy3DParms *parameters),
     (node, graph, dependencies, count, parameters))
{
    const struct node_position place = {node, graph, dependencies, count};
    int error = parameters ? check_position(&place) : (int)cudaErrorInvalidValue;

    return error ? error : capture_one(&place, issue_box, parameters);
}

static cudaError_t issue_memset(cudaStream_t stream, const void *parameters)
{
    const struct cudaMemsetParams *p = parameters;

    size_t width = p->width * p->elementSize;

    return cudaMemset2DAsync(p->dst, p->height == 1 ? width : p->pitch, (int)p->value, width,
                             p->height, stream);
}

/* Elements of several bytes have to be 0: the runtime's own memset knows bytes alone. */
CALL(cudaGraphAddMemsetNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
      const struct cudaMemsetParams *parameters),
     (node, graph, dependencies, count, parameters))
{
    const struct node_position place = {node, graph, dependencies, count};
    int error = parameters ? check_position(&place) : (int)cudaErrorInvalidValue;

    if (!error && parameters->elementSize != 1 && parameters->value)
        return cudaErrorNotSupported;
    return error ? error : capture_one(&place, issue_memset, parameters);
}

static cudaError_t issue_host(cudaStream_t stream, const void *parameters)
{
    const struct cudaHostNodeParams *p = parameters;

    return cudaLaunchHostFunc(stream, p->fn, p->userData);
}

CALL(cudaGraphAddHostNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
      const struct cudaHostNodeParams *parameters),
     (node, graph, dependencies, count, parameters))
{
    const struct node_position place = {node, graph, dependencies, count};
    int error = parameters ? check_position(&place) : (int)cudaErrorInvalidValue;

    return error ? error : capture_one(&place, issue_host, parameters);
}

CALL(cudaGraphAddEmptyNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count),
     (node, graph, dependencies, count))
{
    const struct node_position place = {node, graph, dependencies, count};
    int error = check_position(&place);

    return error ? error
                 : put_node(&place, emu_graph_add(emu_graph_find(graph),
                                                  (struct emu_node *const *)dependencies, count,
                                                  "empty node", NULL, NULL, NULL));
}

/* The child's nodes, those without dependencies behind the place's, and an empty node that stands
 * for its end. */
static int add_child(const struct node_position *place, struct emu_graph *child)
{
    struct emu_graph *graph = emu_graph_find(place->graph);
    size_t first = graph->count;

    for (size_t i = 0; i < child->count; i++) {
        const struct emu_node *from = child->nodes[i];
        struct emu_node *made =
            from->dependency_count
                ? emu_graph_share(graph, from->dependencies, from->dependency_count, from->payload)
                : emu_graph_share(graph, (struct emu_node *const *)place->dependencies,
                                  place->count, from->payload);

        if (!made)
            return cudaErrorMemoryAllocation;
        for (size_t k = 0; k < from->dependency_count; k++)
            made->dependencies[k] = graph->nodes[first + from->dependencies[k]->number];
    }
    return put_node(place, emu_graph_add(graph, graph->nodes + first, graph->count - first,
                                         "end of child graph", NULL, NULL, NULL));
}

CALL(cudaGraphAddChildGraphNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
      cudaGraph_t child),
     (node, graph, dependencies, count, child))
{
    const struct node_position place = {node, graph, dependencies, count};
    int error = emu_graph_find(child) && child != graph ? check_position(&place)
                                                        : (int)cudaErrorInvalidValue;

    return error ? error : add_child(&place, emu_graph_find(child));
}
