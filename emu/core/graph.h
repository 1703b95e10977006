/* graph.h: graphs: work with dependencies, made by stream capture, run by launches.
 *
 * A node's work is shared by its graph and all its instances; it is released when the last of them
 * and the last run are gone. Node numbers are a topological order: a node's dependencies come
 * before it. */
#ifndef DDPCHECK_EMU_GRAPH_H
#define DDPCHECK_EMU_GRAPH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core.h"

struct emu_stream;

struct emu_payload {
    atomic_int references;
    const char *name; /* of the call that made the node */
    emu_work *run;    /* NULL: an empty node */
    void *arg;
    void (*release)(void *);
};

struct emu_node {
    size_t number;
    struct emu_payload *payload;
    size_t dependency_count;
    struct emu_node **dependencies;
};

struct emu_graph {
    struct emu_node **nodes;
    size_t count, room;
    bool is_body; /* of a conditional node, which alone destroys it */
};

struct emu_graph_exec;

/* A graph that programs hold by its address; NULL: no memory. */
struct emu_graph *emu_graph_create(void);
/* Returns 0, or cudaErrorInvalidValue if `handle` is no live graph. */
int emu_graph_destroy(void *handle);
struct emu_graph *emu_graph_find(void *handle);
/* Adds a node behind `dependencies` and takes over the work. NULL: no memory, nothing taken over.
 */
struct emu_node *emu_graph_add(struct emu_graph *graph, struct emu_node *const *dependencies,
                               size_t count, const char *name, emu_work *run, void *arg,
                               void (*release)(void *));
/* The same with a payload that is shared. */
struct emu_node *emu_graph_share(struct emu_graph *graph, struct emu_node *const *dependencies,
                                 size_t count, struct emu_payload *payload);
/* Whether all are nodes of the graph. */
bool emu_graph_has(const struct emu_graph *graph, struct emu_node *const *nodes, size_t count);
/* A graph of its own that does the same work; NULL: no memory. */
struct emu_graph *emu_graph_clone(const struct emu_graph *graph);
/* emu_work and release of a payload. */
int emu_payload_run(void *payload);
void emu_payload_release(void *payload);

/* replay.c. Instances do not refer to the graph that they were made of. */
struct emu_graph_exec *emu_graph_instantiate(const struct emu_graph *graph);
struct emu_graph_exec *emu_graph_exec_find(void *handle);
int emu_graph_exec_destroy(void *handle);
/* Runs it in order with the stream, independent nodes at the same time. Returns a cudaError_t. */
int emu_graph_launch(struct emu_graph_exec *exec, struct emu_stream *stream);

#endif
