/* graph_calls.c: records stream capture and graphs, and what a graph's launch issues again. */
#include "interpose/calls/graph_calls.h"

#include "interpose/calls/operations.h"
#include "interpose/calls/recording.h"
#include "interpose/graphs/graphs.h"
#include "interpose/real/gpu.h"
#include "interpose/record/emit_call.h"
#include "interpose/record/workload.h"

static void point_graph(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                        uint64_t graph, uint64_t exec)
{
    struct record record = {.graph = {.graph = graph, .exec = exec}};
    record.flags |= call->api == API_cudaGraphLaunch ? gpu_capture_flag(stream) : 0;
    emit_point(call, &record, result, stream);
}

/* A capture into a graph that exists adds to what the graph does. The body of a conditional node is
 * such a graph, too: it has a list of its own, and no launch of the graph around it issues that. */
void capture_began(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                   cudaGraph_t graph)
{
    if (result == cudaSuccess)
        atomic_fetch_add(&shim.captures, 1);
    if (result == cudaSuccess && graph)
        graphs_continue(gpu_capture_id(stream), (uintptr_t)graph);
    point_graph(call, result, stream, (uintptr_t)graph, 0);
}

void capture_ending(struct recorded_call *call, cudaStream_t stream)
{
    call->capture = gpu_capture_id(stream);
}

/* The capture is over whether it succeeded or was invalid; one that began while the shim was
 * dormant is not in the count. */
void capture_ended(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                   const cudaGraph_t *graph)
{
    int open = atomic_load(&shim.captures);
    while (open > 0 && !atomic_compare_exchange_weak(&shim.captures, &open, open - 1))
        ;
    uint64_t made = result == cudaSuccess && graph ? (uintptr_t)*graph : 0;
    if (made)
        graphs_share(KEY_GRAPH, made, KEY_CAPTURE, call->capture);
    graphs_drop(KEY_CAPTURE, call->capture);
    point_graph(call, result, stream, made, 0);
}

void graph_instantiated(struct recorded_call *call, cudaError_t result, cudaGraph_t graph,
                        const cudaGraphExec_t *exec)
{
    graph_record_change(call, result, (uintptr_t)graph,
                        result == cudaSuccess && exec ? (uintptr_t)*exec : 0);
}

void graph_updated(struct recorded_call *call, cudaError_t result, cudaGraphExec_t exec,
                   cudaGraph_t graph)
{
    graph_record_change(call, result, (uintptr_t)graph, (uintptr_t)exec);
}

void graph_record_change(struct recorded_call *call, int result, uint64_t graph, uint64_t exec)
{
    if (!result && call->api == API_cudaGraphInstantiate)
        graphs_see(exec);
    if (!result && (call->api == API_cudaGraphInstantiate || call->api == API_cudaGraphExecUpdate))
        graphs_share(KEY_EXEC, exec, KEY_GRAPH, graph);
    point_graph(call, (cudaError_t)result, NULL, graph, exec);
}

void graph_cloned(struct recorded_call *call, cudaError_t result, cudaGraph_t original,
                  const cudaGraph_t *clone)
{
    uint64_t made = result == cudaSuccess && clone ? (uintptr_t)*clone : 0;
    if (made)
        graphs_share(KEY_GRAPH, made, KEY_GRAPH, (uintptr_t)original);
    point_graph(call, result, NULL, (uintptr_t)original, made);
}

void graph_destroyed(struct recorded_call *call, cudaError_t result, cudaGraph_t graph)
{
    if (result == cudaSuccess)
        graphs_drop(KEY_GRAPH, (uintptr_t)graph);
    point_graph(call, result, NULL, (uintptr_t)graph, 0);
}

void graph_exec_destroyed(struct recorded_call *call, cudaError_t result, cudaGraphExec_t exec)
{
    if (result == cudaSuccess) {
        graphs_drop(KEY_EXEC, (uintptr_t)exec);
        graphs_unsee((uintptr_t)exec);
    }
    point_graph(call, result, NULL, 0, (uintptr_t)exec);
}

/* The launch issues all at once, as a group does; a launch that is captured itself only passes them
 * on. */
static void replay_graph(struct recorded_call *call, const struct graph_operations *list,
                         cudaStream_t stream)
{
    struct recorded_call part = *call;
    part.flags |= RECORD_FLAG_REPLAY;
    part.api = API_ncclGroupStart;
    group_started(&part, ncclSuccess);
    for (uint32_t i = 0; i < list->count; i++) {
        part.api = list->operation[i].record.api;
        operation_replay(&part, list->operation[i].member, &list->operation[i].record, stream);
    }
    part.api = API_ncclGroupEnd;
    group_end_enter(&part);
    call->enter = part.enter;
}

static void capture_replay(const struct graph_operations *list, cudaStream_t stream)
{
    uint64_t capture = gpu_capture_id(stream);
    for (uint32_t i = 0; i < list->count; i++)
        graphs_add(capture, list->operation[i].member, &list->operation[i].record);
}

void graph_launch_enter(struct recorded_call *call, cudaGraphExec_t exec, cudaStream_t stream)
{
    static const char unseen[] = "what a CUDA graph does that was made before the shim watched";
    if (!graphs_is_seen((uintptr_t)exec)) {
        struct recorded_call notice = *call;
        notice.api = API_notice_blind;
        notice_blind(&notice, ncclSuccess, UNSEEN_GRAPH, unseen);
        graphs_see((uintptr_t)exec);
    }
    struct graph_operations *list = graphs_take((uintptr_t)exec);
    if (!list)
        return;
    if (gpu_is_capturing(stream))
        capture_replay(list, stream);
    else if (!call->thread->group_depth)
        replay_graph(call, list, stream);
    graphs_give_back(list);
}

void graph_launch_leave(struct recorded_call *call, cudaError_t result, cudaGraphExec_t exec,
                        cudaStream_t stream)
{
    if (call->enter) {
        struct recorded_call part = *call;
        part.flags |= RECORD_FLAG_REPLAY;
        part.api = API_ncclGroupEnd;
        group_end_leave(&part, result == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError);
    }
    call->enter = 0;
    point_graph(call, result, stream, 0, (uintptr_t)exec);
    workload_graph(gpu_thread_device(call->thread));
}
