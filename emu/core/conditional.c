/* conditional.c: the nodes of a graph that run their bodies, or not. */
#include "emu/core/conditional.h"

#include <driver_types.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "emu/core/graph.h"

enum { VALUE_BITS = 32 };

struct conditional {
    int type;
    unsigned value, size;
    struct emu_graph *bodies[];
};

uint64_t emu_conditional_handle(unsigned value)
{
    static _Atomic uint64_t next = 1;

    return atomic_fetch_add(&next, 1) << VALUE_BITS | value;
}

/* The number of the body that runs; none: the number of bodies. */
static unsigned chosen_body(const struct conditional *conditional)
{
    if (conditional->type == cudaGraphCondTypeSwitch)
        return conditional->value < conditional->size ? conditional->value : conditional->size;
    return conditional->value ? 0 : 1;
}

/* Node by node, which is an order that is allowed. */
static int run_conditional(void *arg)
{
    const struct conditional *conditional = arg;
    unsigned chosen = chosen_body(conditional);
    const struct emu_graph *body = chosen < conditional->size ? conditional->bodies[chosen] : NULL;
    int error = 0;

    for (size_t i = 0; body && i < body->count && !error; i++)
        error = emu_payload_run(body->nodes[i]->payload);
    return error;
}

static void conditional_free(void *arg)
{
    struct conditional *conditional = arg;

    for (unsigned i = 0; i < conditional->size && conditional->bodies[i]; i++) {
        conditional->bodies[i]->is_body = false;
        emu_graph_destroy(conditional->bodies[i]);
    }
    free(conditional);
}

struct emu_node *emu_conditional_add(struct emu_graph *graph, struct emu_node *const *dependencies,
                                     size_t count, uint64_t handle, int type, unsigned size,
                                     struct emu_graph ***bodies)
{
    struct conditional *conditional =
        calloc(1, sizeof(*conditional) + size * sizeof(struct emu_graph *));
    struct emu_node *node = NULL;

    if (!conditional)
        return NULL;
    conditional->type = type;
    conditional->value = (unsigned)handle;
    conditional->size = size;
    for (unsigned i = 0; i < size; i++) {
        conditional->bodies[i] = emu_graph_create();
        if (!conditional->bodies[i])
            goto no_memory;
        conditional->bodies[i]->is_body = true;
    }
    node = emu_graph_add(graph, dependencies, count, EMU_CONDITIONAL, run_conditional, conditional,
                         conditional_free);
    if (!node)
        goto no_memory;
    *bodies = conditional->bodies;
    return node;
no_memory:
    conditional_free(conditional);
    return NULL;
}
