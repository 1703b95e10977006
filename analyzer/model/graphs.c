/* graphs.c: keeps what was captured into CUDA graphs, and replays it at each launch. */
#include "analyzer/model/graphs.h"

#include <errno.h>
#include <stdlib.h>

#include "analyzer/model/order.h"
#include "analyzer/model/timelines.h"
#include "lib/base/invariant.h"

enum { CAPTURES_MAX = 256, GRAPHS_MAX = 16384 };

struct capture {
    uint64_t id;
    struct stream_state *streams; /* counterparts, by the key of the stream */
    struct graph_content *content;
    struct capture *next;
};

/* A graph or what was instantiated from one: a handle and what it does. */
struct graph {
    uint64_t handle;
    struct graph_content *content;
    UT_hash_handle hh;
};

uint64_t capture_id(const struct capture *capture)
{
    return capture->id;
}

struct intervals *capture_intervals(struct capture *capture)
{
    return &capture->content->ranges;
}

static void content_release(struct graph_content *content)
{
    invariant(content->references, "a graph's content is released once by each who refers to it");
    if (--content->references)
        return;
    intervals_free(&content->ranges);
    free(content);
}

static void graph_remove(struct process *process, struct graph *graph)
{
    HASH_DEL(process->order.graphs, graph);
    content_release(graph->content);
    free(graph);
}

static struct graph *graph_find(const struct process *process, uint64_t handle)
{
    struct graph *graph;
    TABLE_FIND(process->order.graphs, &handle, graph);
    return graph;
}

/* The handle stands for this content from now on. ENGINE_*. */
static int graph_put(struct process *process, uint64_t handle, struct graph_content *content)
{
    struct graph *graph = graph_find(process, handle);
    content->references++;
    if (graph) {
        content_release(graph->content);
        graph->content = content;
        return ENGINE_OK;
    }
    if (HASH_COUNT(process->order.graphs) >= GRAPHS_MAX)
        graph_remove(process, process->order.graphs);
    graph = calloc(1, sizeof *graph);
    if (graph) {
        graph->handle = handle;
        graph->content = content;
        TABLE_ADD(process->order.graphs, handle, graph);
        if (TABLE_ADDED(graph))
            return ENGINE_OK;
    }
    free(graph);
    content_release(content);
    return ENGINE_FAILED;
}

static void capture_end(struct process *process, struct capture *capture)
{
    struct capture **link = &process->order.captures;
    while (*link && *link != capture)
        link = &(*link)->next;
    invariant(*link, "a capture that ends is one of its process");
    if (*link)
        *link = capture->next;
    for (uint32_t i = 0; i < process->order.timelines; i++)
        if (process->order.timeline[i]->capture == capture)
            process->order.timeline[i]->capture = NULL;
    struct stream_state *stream, *next;
    HASH_ITER(hh, capture->streams, stream, next) {
        HASH_DEL(capture->streams, stream);
        timeline_free(process, stream);
    }
    content_release(capture->content);
    free(capture);
}

static int capture_begin(struct process *process, const struct record *record)
{
    struct stream_state *stream = timeline_get(process, record);
    if (!stream)
        return ENGINE_FAILED;
    if (stream->capture)
        capture_end(process, stream->capture); /* its end was lost */
    uint32_t open = 0;
    for (struct capture *capture = process->order.captures, *next; capture; capture = next) {
        next = capture->next;
        if (++open >= CAPTURES_MAX)
            capture_end(process, capture);
    }
    struct capture *capture = calloc(1, sizeof *capture);
    if (!capture || !(capture->content = calloc(1, sizeof *capture->content))) {
        free(capture);
        return ENGINE_FAILED;
    }
    capture->content->references = 1;
    const struct graph *into = record->graph.graph ? graph_find(process, record->graph.graph)
                                                   : NULL;
    capture->content->partly_known = record->graph.graph != 0; /* the graph has other nodes */
    for (int i = 0; into && i < GRAPH_MEMBERS_MAX; i++)
        capture->content->member[i] = into->content->member[i];
    capture->id = ++process->order.last_capture;
    capture->next = process->order.captures;
    invariant(!capture->next || capture->next->id < capture->id,
              "captures are listed from the newest to the oldest");
    process->order.captures = stream->capture = capture;
    return ENGINE_OK;
}

int capture_join(struct process *process, const struct record *record, uint64_t id)
{
    struct stream_state *stream = timeline_get(process, record);
    if (!stream)
        return -1;
    for (struct capture *capture = process->order.captures; capture && !stream->capture;
         capture = capture->next)
        if (capture->id == id)
            stream->capture = capture;
    return 0;
}

struct stream_state *capture_stream(struct process *process, const struct stream_state *stream)
{
    struct capture *capture = stream->capture;
    struct stream_state *counterpart;
    TABLE_FIND(capture->streams, &stream->key, counterpart);
    if (counterpart)
        return counterpart;
    counterpart = timeline_new(process, &stream->key, stream->device);
    if (!counterpart)
        return NULL;
    counterpart->is_captured = counterpart->known = true;
    counterpart->capture = capture;
    TABLE_ADD(capture->streams, key, counterpart);
    if (TABLE_ADDED(counterpart))
        return counterpart;
    timeline_free(process, counterpart);
    return NULL;
}

static int capture_became_graph(struct process *process, const struct record *record)
{
    struct stream_state *stream = timeline_get(process, record);
    if (!stream)
        return ENGINE_FAILED;
    struct graph *before = graph_find(process, record->graph.graph);
    if (!stream->capture) { /* began unseen: nothing is known of what the handle stands for */
        if (before)
            graph_remove(process, before);
        return ENGINE_OK;
    }
    int result = ENGINE_OK;
    if (record->result == 0 && record->graph.graph)
        result = graph_put(process, record->graph.graph, stream->capture->content);
    capture_end(process, stream->capture);
    return result;
}

/* A handle gets what another one stands for, or stands for nothing that is known. */
static int graph_copied(struct process *process, uint64_t from, uint64_t to)
{
    struct graph *graph = graph_find(process, from), *before = graph_find(process, to);
    if (graph)
        return graph_put(process, to, graph->content);
    if (before)
        graph_remove(process, before);
    return ENGINE_OK;
}

static void graph_destroyed(struct process *process, uint64_t handle)
{
    struct graph *graph = graph_find(process, handle);
    if (graph)
        graph_remove(process, graph);
}

int graphs_feed(struct process *process, const struct record *record)
{
    struct graph *graph;
    if (record->api == API_cudaStreamEndCapture)
        return capture_became_graph(process, record);
    if (record->result != 0)
        return ENGINE_OK;
    switch (record->api) {
    case API_cudaStreamBeginCapture:
        return capture_begin(process, record);
    case API_cudaGraphInstantiate:
    case API_cudaGraphClone:
    case API_cudaGraphExecUpdate:
        return graph_copied(process, record->graph.graph, record->graph.exec);
    case API_cudaGraphAddNode:
        if ((graph = graph_find(process, record->graph.graph)))
            graph->content->partly_known = true;
        return ENGINE_OK;
    case API_cudaGraphExecDestroy:
        graph_destroyed(process, record->graph.exec);
        return ENGINE_OK;
    case API_cudaGraphDestroy:
        graph_destroyed(process, record->graph.graph);
        return ENGINE_OK;
    default:
        return ENGINE_OK;
    }
}

const struct graph_content *graph_launched(struct process *process, uint64_t exec)
{
    struct graph *graph = graph_find(process, exec);
    return graph ? graph->content : NULL;
}

void capture_note_member(struct capture *capture, const struct member *member)
{
    const struct member **members = capture->content->member;
    for (int i = 0; i < GRAPH_MEMBERS_MAX; i++)
        if (!members[i] || members[i] == member) {
            members[i] = member;
            return;
        }
}

bool graphs_hold(const struct member *member)
{
    for (const struct graph *graph = member->process->order.graphs; graph; graph = graph->hh.next)
        for (int i = 0; i < GRAPH_MEMBERS_MAX; i++)
            if (graph->content->member[i] == member)
                return true;
    return false;
}

static void content_visit_members(const struct graph_content *content,
                                  void (*visit)(void *context, const struct member *member),
                                  void *context)
{
    for (int i = 0; i < GRAPH_MEMBERS_MAX; i++)
        if (content->member[i])
            visit(context, content->member[i]);
    intervals_visit_members(&content->ranges, visit, context);
}

void graphs_visit_members(const struct process *process,
                          void (*visit)(void *context, const struct member *member), void *context)
{
    for (const struct capture *capture = process->order.captures; capture; capture = capture->next)
        content_visit_members(capture->content, visit, context);
    for (const struct graph *graph = process->order.graphs; graph; graph = graph->hh.next)
        content_visit_members(graph->content, visit, context);
}

void captures_free(struct process *process)
{
    while (process->order.captures)
        capture_end(process, process->order.captures);
    struct graph *graph, *next;
    HASH_ITER(hh, process->order.graphs, graph, next)
        graph_remove(process, graph);
}
