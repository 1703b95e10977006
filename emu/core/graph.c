/* graph.c: builds, copies and frees graphs and their nodes. */
#include "emu/core/graph.h"

#include <driver_types.h>
#include <stdlib.h>
#include <string.h>

#include "emu/core/handles.h"

struct emu_graph *emu_graph_create(void)
{
    struct emu_graph *graph = calloc(1, sizeof(*graph));

    if (graph && emu_handles_add(graph, HANDLE_GRAPH)) {
        free(graph);
        return NULL;
    }
    return graph;
}

struct emu_graph *emu_graph_find(void *handle)
{
    return emu_handles_kind(handle) == HANDLE_GRAPH ? handle : NULL;
}

static void node_free(struct emu_node *node)
{
    emu_payload_release(node->payload);
    free(node->dependencies);
    free(node);
}

int emu_graph_destroy(void *handle)
{
    struct emu_graph *graph = emu_graph_find(handle);

    if (!graph || graph->is_body || !emu_handles_remove(handle, HANDLE_GRAPH))
        return cudaErrorInvalidValue;
    for (size_t i = 0; i < graph->count; i++)
        node_free(graph->nodes[i]);
    free(graph->nodes);
    free(graph);
    return 0;
}

int emu_payload_run(void *arg)
{
    struct emu_payload *payload = arg;

    return payload->run ? payload->run(payload->arg) : 0;
}

void emu_payload_release(void *arg)
{
    struct emu_payload *payload = arg;

    if (!payload || atomic_fetch_sub(&payload->references, 1) > 1)
        return;
    if (payload->release)
        payload->release(payload->arg);
    free(payload);
}

bool emu_graph_has(const struct emu_graph *graph, struct emu_node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t number = 0;

        while (number < graph->count && graph->nodes[number] != nodes[i])
            number++;
        if (number == graph->count)
            return false;
    }
    return true;
}

static bool reserve_node(struct emu_graph *graph)
{
    size_t room = graph->room ? graph->room * 2 : 16;
    struct emu_node **nodes;

    if (graph->count < graph->room)
        return true;
    nodes = realloc(graph->nodes, room * sizeof(struct emu_node *));
    if (!nodes)
        return false;
    graph->nodes = nodes;
    graph->room = room;
    return true;
}

struct emu_node *emu_graph_share(struct emu_graph *graph, struct emu_node *const *dependencies,
                                 size_t count, struct emu_payload *payload)
{
    struct emu_node *node = calloc(1, sizeof(*node));

    if (!node || !reserve_node(graph))
        goto no_memory;
    if (count) {
        node->dependencies = malloc(count * sizeof(struct emu_node *));
        if (!node->dependencies)
            goto no_memory;
        memcpy(node->dependencies, dependencies, count * sizeof(struct emu_node *));
    }
    node->dependency_count = count;
    atomic_fetch_add(&payload->references, 1);
    node->payload = payload;
    node->number = graph->count;
    graph->nodes[graph->count++] = node;
    return node;
no_memory:
    free(node);
    return NULL;
}

struct emu_graph *emu_graph_clone(const struct emu_graph *graph)
{
    struct emu_graph *clone = emu_graph_create();

    for (size_t i = 0; clone && i < graph->count; i++) {
        const struct emu_node *node = graph->nodes[i];
        struct emu_node *copy =
            emu_graph_share(clone, node->dependencies, node->dependency_count, node->payload);

        if (!copy) {
            emu_graph_destroy(clone);
            return NULL;
        }
        for (size_t k = 0; k < node->dependency_count; k++)
            copy->dependencies[k] = clone->nodes[node->dependencies[k]->number];
    }
    return clone;
}

struct emu_node *emu_graph_add(struct emu_graph *graph, struct emu_node *const *dependencies,
                               size_t count, const char *name, emu_work *run, void *arg,
                               void (*release)(void *))
{
    struct emu_payload *payload = malloc(sizeof(*payload));
    struct emu_node *node;

    if (!payload)
        return NULL;
    *payload = (struct emu_payload){.name = name, .run = run, .arg = arg, .release = release};
    atomic_init(&payload->references, 0);
    node = emu_graph_share(graph, dependencies, count, payload);
    if (!node)
        free(payload);
    return node;
}
