/* replay.c: launches graphs. The nodes are dealt out to lanes; in a lane each node depends on the
 * one before. Lane 0 is the stream that the graph is launched into, every other lane a stream of
 * the instance; dependencies across lanes are waits for positions. So what a graph leaves unordered
 * runs at the same time, as on a GPU. */
#include <driver_types.h>
#include <pthread.h>
#include <stdlib.h>

#include "emu/core/capture.h"
#include "emu/core/device.h"
#include "emu/core/graph.h"
#include "emu/core/handles.h"
#include "emu/core/stream.h"

struct step {
    struct emu_payload *payload;
    size_t lane;
    size_t dependency_count;
    size_t *dependencies; /* numbers of earlier steps */
    uint64_t position;    /* in its lane, of the launch being made */
};

struct emu_graph_exec {
    pthread_mutex_t lock; /* one launch at a time is put together */
    struct step *steps;
    size_t step_count, lane_count;
    size_t *lane_ends;         /* the last step of each lane */
    int device;                /* of the lanes; -1: not made yet */
    struct emu_stream **lanes; /* [0] is the launch stream of the launch being made */
    struct emu_stream
        *last_stream; /* where the last launch ends: launches of an instance do not overlap */
    uint64_t last_position;
};

/* Puts the step into the lane of a dependency that nobody follows yet, else into a lane of its own.
 */
static void choose_lane(struct emu_graph_exec *exec, size_t number)
{
    struct step *step = &exec->steps[number];

    step->lane = exec->lane_count;
    for (size_t i = 0; i < step->dependency_count; i++)
        if (exec->lane_ends[exec->steps[step->dependencies[i]].lane] == step->dependencies[i]) {
            step->lane = exec->steps[step->dependencies[i]].lane;
            break;
        }
    if (step->lane == exec->lane_count)
        exec->lane_count++;
    exec->lane_ends[step->lane] = number;
}

static int copy_step(struct step *step, const struct emu_node *node)
{
    if (node->dependency_count) {
        step->dependencies = malloc(node->dependency_count * sizeof(size_t));
        if (!step->dependencies)
            return -1;
    }
    for (size_t i = 0; i < node->dependency_count; i++)
        step->dependencies[i] = node->dependencies[i]->number;
    step->dependency_count = node->dependency_count;
    step->payload = node->payload;
    atomic_fetch_add(&step->payload->references, 1);
    return 0;
}

static void exec_free(struct emu_graph_exec *exec)
{
    for (size_t i = 0; i < exec->step_count; i++) {
        emu_payload_release(exec->steps[i].payload);
        free(exec->steps[i].dependencies);
    }
    for (size_t i = 1; exec->lanes && i < exec->lane_count; i++)
        if (exec->lanes[i])
            emu_stream_destroy(exec->lanes[i]);
    if (exec->last_stream)
        emu_stream_release(exec->last_stream);
    pthread_mutex_destroy(&exec->lock);
    free(exec->steps);
    free(exec->lane_ends);
    free(exec->lanes);
    free(exec);
}

struct emu_graph_exec *emu_graph_instantiate(const struct emu_graph *graph)
{
    struct emu_graph_exec *exec = calloc(1, sizeof(*exec));
    size_t room = graph->count + 1;

    if (!exec)
        return NULL;
    pthread_mutex_init(&exec->lock, NULL);
    exec->device = -1;
    exec->steps = calloc(room, sizeof(*exec->steps));
    exec->lane_ends = calloc(room, sizeof(*exec->lane_ends));
    exec->lanes = calloc(room, sizeof(*exec->lanes));
    if (!exec->steps || !exec->lane_ends || !exec->lanes)
        goto no_memory;
    for (; exec->step_count < graph->count; exec->step_count++) {
        if (copy_step(&exec->steps[exec->step_count], graph->nodes[exec->step_count]))
            goto no_memory;
        choose_lane(exec, exec->step_count);
    }
    if (!emu_handles_add(exec, HANDLE_GRAPH_EXEC))
        return exec;
no_memory:
    exec_free(exec);
    return NULL;
}

struct emu_graph_exec *emu_graph_exec_find(void *handle)
{
    return emu_handles_kind(handle) == HANDLE_GRAPH_EXEC ? handle : NULL;
}

int emu_graph_exec_destroy(void *handle)
{
    if (!emu_handles_remove(handle, HANDLE_GRAPH_EXEC))
        return cudaErrorInvalidValue;
    exec_free(handle);
    return 0;
}

static int run_empty_node(void *arg)
{
    (void)arg;
    return 0;
}

/* Makes the lanes on the launch stream's device. */
static int make_lanes(struct emu_graph_exec *exec, struct emu_stream *stream)
{
    bool moved = exec->device != stream->device->index;

    exec->lanes[0] = stream;
    for (size_t i = 1; i < exec->lane_count; i++) {
        if (moved && exec->lanes[i])
            emu_stream_destroy(exec->lanes[i]);
        if (moved)
            exec->lanes[i] = emu_stream_new(stream->device, cudaStreamNonBlocking, 0);
        if (!exec->lanes[i])
            return cudaErrorMemoryAllocation;
    }
    exec->device = stream->device->index;
    return 0;
}

static int launch_step(struct emu_graph_exec *exec, struct step *step)
{
    struct emu_stream *lane = exec->lanes[step->lane];
    int error = 0;

    for (size_t i = 0; i < step->dependency_count && !error; i++) {
        const struct step *before = &exec->steps[step->dependencies[i]];

        if (before->lane != step->lane)
            error = emu_stream_append_wait(lane, exec->lanes[before->lane], before->position);
    }
    if (error)
        return error;
    atomic_fetch_add(&step->payload->references, 1);
    error = emu_stream_append(lane, step->payload->name, emu_payload_run, step->payload,
                              emu_payload_release, &step->position);
    if (error)
        emu_payload_release(step->payload);
    return error;
}

/* Opens every lane behind what is on the launch stream now and behind the launch before. */
static int open_lanes(struct emu_graph_exec *exec, struct emu_stream *stream)
{
    uint64_t begin;
    int error = 0;

    if (exec->last_stream)
        error = emu_stream_append_wait(stream, exec->last_stream, exec->last_position);
    if (!error)
        error = emu_stream_append(stream, "graph begin", run_empty_node, NULL, NULL, &begin);
    for (size_t i = 1; i < exec->lane_count && !error; i++)
        error = emu_stream_append_wait(exec->lanes[i], stream, begin);
    return error;
}

static int close_lanes(struct emu_graph_exec *exec, struct emu_stream *stream)
{
    uint64_t end;
    int error = 0;

    for (size_t i = 1; i < exec->lane_count && !error; i++)
        error = emu_stream_append_wait(stream, exec->lanes[i],
                                       exec->steps[exec->lane_ends[i]].position);
    if (!error)
        error = emu_stream_append(stream, "graph end", run_empty_node, NULL, NULL, &end);
    if (error)
        return error;
    if (exec->last_stream)
        emu_stream_release(exec->last_stream);
    exec->last_stream = emu_stream_hold(stream);
    exec->last_position = end;
    return 0;
}

/* A launch into a stream that is being captured becomes part of that graph. */
static int capture_steps(struct emu_graph_exec *exec, struct emu_stream *stream)
{
    int error = 0;

    for (size_t i = 0; i < exec->step_count && !error; i++) {
        struct emu_payload *payload = exec->steps[i].payload;

        /* One after the other: an order that is allowed, if not the only one. */
        atomic_fetch_add(&payload->references, 1);
        error =
            emu_capture_add(stream, payload->name, emu_payload_run, payload, emu_payload_release);
        if (error)
            emu_payload_release(payload);
    }
    return error;
}

int emu_graph_launch(struct emu_graph_exec *exec, struct emu_stream *stream)
{
    int error = emu_capture_forbids(stream);

    if (error)
        return error;
    pthread_mutex_lock(&exec->lock);
    if (atomic_load(&stream->capture)) {
        error = capture_steps(exec, stream);
    } else {
        error = make_lanes(exec, stream);
        if (!error)
            error = open_lanes(exec, stream);
        for (size_t i = 0; i < exec->step_count && !error; i++)
            error = launch_step(exec, &exec->steps[i]);
        if (!error)
            error = close_lanes(exec, stream);
    }
    pthread_mutex_unlock(&exec->lock);
    return error;
}
