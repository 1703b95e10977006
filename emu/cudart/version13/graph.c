/* graph.c: nodes of graphs with the parameters of CUDA 13. */
#include "emu/cudart/versions.h"

CALL(cudaGraphAddNode,
     (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
      const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *parameters),
     (node, graph, dependencies, edges, count, parameters))
{
    (void)edges;
    return version_add_node(node, graph, dependencies, count, parameters);
}
