/* conditional.h: conditional nodes of graphs (CUDA programming guide, "Conditional Graph Nodes").
 *
 * On a GPU kernels set the condition while the graph runs (cudaGraphSetConditional). Emulated
 * kernels can't: a node goes by the handle's default value, and a loop's body runs once at most. */
#ifndef DDPCHECK_EMU_CONDITIONAL_H
#define DDPCHECK_EMU_CONDITIONAL_H

#include <stddef.h>
#include <stdint.h>

struct emu_graph;
struct emu_node;

/* The name of such a node's payload. */
#define EMU_CONDITIONAL "conditional node"

/* A handle (cudaGraphConditionalHandle); `value` is that of each launch. Never 0. */
uint64_t emu_conditional_handle(unsigned value);

/* Adds a node of this type (cudaGraphConditionalNodeType) with `size` empty bodies, which the
 * caller fills by captures and which belong to the node. NULL: no memory. */
struct emu_node *emu_conditional_add(struct emu_graph *graph, struct emu_node *const *dependencies,
                                     size_t count, uint64_t handle, int type, unsigned size,
                                     struct emu_graph ***bodies);

#endif
