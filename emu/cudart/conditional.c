/* conditional.c: cudaGraphAddNode, which alone adds conditional nodes, and their handles. */
#include "emu/core/conditional.h"

#include <limits.h>

#include "emu/core/graph.h"
#include "emu/cudart/versions.h"

CALL(cudaGraphConditionalHandleCreate,
     (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned int value,
      unsigned int flags),
     (handle, graph, value, flags))
{
    if (!handle || !emu_graph_find(graph) || flags & ~(unsigned)cudaGraphCondAssignDefault)
        return cudaErrorInvalidValue;
    *handle = emu_conditional_handle(flags & cudaGraphCondAssignDefault ? value : 0);
    return cudaSuccess;
}

static int add_conditional(cudaGraphNode_t *node, cudaGraph_t graph,
                           const cudaGraphNode_t *dependencies, size_t count,
                           struct cudaConditionalNodeParams *wanted)
{
    enum { IF_SIZE_MAX = 2 };
    struct emu_graph **bodies;
    struct emu_graph *into = emu_graph_find(graph);
    struct emu_node *const *nodes = (struct emu_node *const *)dependencies;
    unsigned size_max = wanted->type == cudaGraphCondTypeIf ? IF_SIZE_MAX : UINT_MAX;

    if (wanted->type == cudaGraphCondTypeWhile)
        size_max = 1;
    if (!node || !into || (count && !nodes) || !emu_graph_has(into, nodes, count) ||
        !wanted->handle || (unsigned)wanted->type > cudaGraphCondTypeSwitch || !wanted->size ||
        wanted->size > size_max)
        return cudaErrorInvalidValue;
    *node = (cudaGraphNode_t)emu_conditional_add(into, nodes, count, wanted->handle,
                                                 (int)wanted->type, wanted->size, &bodies);
    if (!*node)
        return cudaErrorMemoryAllocation;
    wanted->phGraph_out = (cudaGraph_t *)bodies;
    return cudaSuccess;
}

int version_add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                     size_t count, struct cudaGraphNodeParams *parameters)
{
    if (!parameters)
        return cudaErrorInvalidValue;
    switch (parameters->type) {
    case cudaGraphNodeTypeConditional:
        return add_conditional(node, graph, dependencies, count, &parameters->conditional);
    case cudaGraphNodeTypeEmpty:
        return cudaGraphAddEmptyNode(node, graph, dependencies, count);
    case cudaGraphNodeTypeGraph:
        return cudaGraphAddChildGraphNode(node, graph, dependencies, count,
                                          parameters->graph.graph);
    case cudaGraphNodeTypeKernel:
        return cudaGraphAddKernelNode(node, graph, dependencies, count,
                                      &(struct cudaKernelNodeParams){
                                          .func = parameters->kernel.func,
                                          .gridDim = parameters->kernel.gridDim,
                                          .blockDim = parameters->kernel.blockDim,
                                          .sharedMemBytes = parameters->kernel.sharedMemBytes,
                                          .kernelParams = parameters->kernel.kernelParams,
                                          .extra = parameters->kernel.extra,
                                      });
    case cudaGraphNodeTypeMemcpy:
        return cudaGraphAddMemcpyNode(node, graph, dependencies, count,
                                      &parameters->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        return cudaGraphAddMemsetNode(node, graph, dependencies, count,
                                      (const struct cudaMemsetParams *)&parameters->memset);
    case cudaGraphNodeTypeHost:
        return cudaGraphAddHostNode(node, graph, dependencies, count,
                                    (const struct cudaHostNodeParams *)&parameters->host);
    default:
        emu_unsupported("cudaGraphAddNode", "nodes of this type are not emulated");
        return cudaErrorNotSupported;
    }
}
