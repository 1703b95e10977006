/* graphs.c: recording of stream capture and graphs. See graphs.h. */
#include "interpose/graphs/graphs.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "interpose/record/emit.h"
#include "interpose/progress/gpu.h"
#include "interpose/calls/operations.h"
#include "interpose/record/recording.h"

enum { KEYS_MAX = 4096, LIST_FIRST = 62 };

struct captured {
    struct member *member;
    struct record record;
};

/* In pages of its own; grows by doubling while it is captured, and is not changed after. */
struct list {
    uint32_t references, count, room;
    struct captured operation[];
};

/* A capture's id, a graph or an instance, and its list. */
enum key_kind { KEY_FREE, KEY_CAPTURE, KEY_GRAPH, KEY_EXEC };
struct key {
    enum key_kind kind;
    uint64_t value;
    struct list *list;
};

static struct {
    _Atomic uint32_t locked;
    _Atomic uint32_t keys; /* in use; 0: nothing to look for */
    uint32_t end;          /* all that are in use lie below */
    struct key key[KEYS_MAX];
} graphs;

void graphs_forked(void)
{
    memset((void *)&graphs, 0, sizeof graphs);
}

static void lock(void)
{
    while (atomic_exchange_explicit(&graphs.locked, 1, memory_order_acquire))
        sched_yield();
}

static void unlock(void)
{
    atomic_store_explicit(&graphs.locked, 0, memory_order_release);
}

static size_t list_bytes(uint32_t room)
{
    return sizeof(struct list) + room * sizeof(struct captured);
}

static struct list *list_new(uint32_t room)
{
    struct list *list =
        mmap(NULL, list_bytes(room), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (list == MAP_FAILED)
        return NULL;
    list->references = 1;
    list->room = room;
    return list;
}

static void list_drop(struct list *list)
{
    if (list && !--list->references)
        munmap(list, list_bytes(list->room));
}

/* With the lock: the key, or NULL. */
static struct key *find(enum key_kind kind, uint64_t value)
{
    for (uint32_t i = 0; i < graphs.end; i++)
        if (graphs.key[i].kind == kind && graphs.key[i].value == value)
            return &graphs.key[i];
    return NULL;
}

static void forget(enum key_kind kind, uint64_t value)
{
    struct key *key = find(kind, value);
    if (!key)
        return;
    list_drop(key->list);
    key->kind = KEY_FREE;
    atomic_fetch_sub(&graphs.keys, 1);
    while (graphs.end && graphs.key[graphs.end - 1].kind == KEY_FREE)
        graphs.end--;
}

/* Takes over a reference to the list; one that finds no place is not replayed. */
static void put(enum key_kind kind, uint64_t value, struct list *list)
{
    forget(kind, value);
    if (!list)
        return;
    uint32_t i = 0;
    while (i < graphs.end && graphs.key[i].kind != KEY_FREE)
        i++;
    if (i == KEYS_MAX) {
        list_drop(list);
        return;
    }
    graphs.key[i] = (struct key){kind, value, list};
    if (i == graphs.end)
        graphs.end++;
    atomic_fetch_add(&graphs.keys, 1);
}

static struct list *reference(enum key_kind kind, uint64_t value)
{
    struct key *key = find(kind, value);
    if (key)
        key->list->references++;
    return key ? key->list : NULL;
}

/* `to` does from now on what `from` does. */
static void share(enum key_kind to_kind, uint64_t to, enum key_kind from_kind, uint64_t from)
{
    if (!atomic_load_explicit(&graphs.keys, memory_order_relaxed))
        return;
    lock();
    put(to_kind, to, reference(from_kind, from));
    unlock();
}

static void drop(enum key_kind kind, uint64_t value)
{
    if (!atomic_load_explicit(&graphs.keys, memory_order_relaxed))
        return;
    lock();
    forget(kind, value);
    unlock();
}

/* A list with room for one more, in the place of a full one. */
static struct list *grown(struct key *key)
{
    struct list *full = key->list;
    if (full->count < full->room)
        return full;
    struct list *list = list_new(full->room * 2);
    if (!list)
        return NULL;
    memcpy(list->operation, full->operation, full->count * sizeof *full->operation);
    list->count = full->count;
    key->list = list;
    list_drop(full);
    return list;
}

void graphs_add(uint64_t capture, struct member *member, const struct record *record)
{
    lock();
    struct key *key = find(KEY_CAPTURE, capture);
    if (!key) {
        put(KEY_CAPTURE, capture, list_new(LIST_FIRST));
        key = find(KEY_CAPTURE, capture);
    }
    struct list *list = key ? grown(key) : NULL;
    if (list)
        list->operation[list->count++] = (struct captured){member, *record};
    unlock();
}

static void point_graph(struct call *call, cudaError_t result, cudaStream_t stream, uint64_t graph,
                        uint64_t exec)
{
    struct record record = {.graph = {.graph = graph, .exec = exec}};
    record.flags |= call->api == API_cudaGraphLaunch ? gpu_capture_flag(stream) : 0;
    emit_point(call, &record, result, stream);
}

void capture_began(struct call *call, cudaError_t result, cudaStream_t stream)
{
    if (result == cudaSuccess)
        atomic_fetch_add(&shim.captures, 1);
    point_graph(call, result, stream, 0, 0);
}

void capture_ending(struct call *call, cudaStream_t stream)
{
    call->capture = gpu_capture_id(stream);
}

/* The capture is over whether it succeeded or was invalid; one that began while the shim slept is
 * not in the count. */
void capture_ended(struct call *call, cudaError_t result, cudaStream_t stream,
                   const cudaGraph_t *graph)
{
    int open = atomic_load(&shim.captures);
    while (open > 0 && !atomic_compare_exchange_weak(&shim.captures, &open, open - 1))
        ;
    uint64_t made = result == cudaSuccess && graph ? (uintptr_t)*graph : 0;
    if (made)
        share(KEY_GRAPH, made, KEY_CAPTURE, call->capture);
    drop(KEY_CAPTURE, call->capture);
    point_graph(call, result, stream, made, 0);
}

void graph_instantiated(struct call *call, cudaError_t result, cudaGraph_t graph,
                        const cudaGraphExec_t *exec)
{
    graphs_changed(call, result, (uintptr_t)graph,
                   result == cudaSuccess && exec ? (uintptr_t)*exec : 0);
}

void graph_updated(struct call *call, cudaError_t result, cudaGraphExec_t exec, cudaGraph_t graph)
{
    graphs_changed(call, result, (uintptr_t)graph, (uintptr_t)exec);
}

void graphs_changed(struct call *call, int result, uint64_t graph, uint64_t exec)
{
    if (!result && call->api == API_cudaGraphInstantiate)
        handles_add(&shim.graphs, exec);
    if (!result && (call->api == API_cudaGraphInstantiate || call->api == API_cudaGraphExecUpdate))
        share(KEY_EXEC, exec, KEY_GRAPH, graph);
    point_graph(call, (cudaError_t)result, NULL, graph, exec);
}

void graph_cloned(struct call *call, cudaError_t result, cudaGraph_t original,
                  const cudaGraph_t *clone)
{
    uint64_t made = result == cudaSuccess && clone ? (uintptr_t)*clone : 0;
    if (made)
        share(KEY_GRAPH, made, KEY_GRAPH, (uintptr_t)original);
    point_graph(call, result, NULL, (uintptr_t)original, made);
}

void graph_destroyed(struct call *call, cudaError_t result, cudaGraph_t graph)
{
    if (result == cudaSuccess)
        drop(KEY_GRAPH, (uintptr_t)graph);
    point_graph(call, result, NULL, (uintptr_t)graph, 0);
}

void graph_exec_destroyed(struct call *call, cudaError_t result, cudaGraphExec_t exec)
{
    if (result == cudaSuccess) {
        drop(KEY_EXEC, (uintptr_t)exec);
        handles_remove(&shim.graphs, (uintptr_t)exec);
    }
    point_graph(call, result, NULL, 0, (uintptr_t)exec);
}

/* The launch issues all at once, as a group does; a launch that is captured itself only passes them
 * on. */
static void replay(struct call *call, const struct list *list, cudaStream_t stream)
{
    struct call part = *call;
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

static void pass_on(const struct list *list, cudaStream_t stream)
{
    uint64_t capture = gpu_capture_id(stream);
    for (uint32_t i = 0; i < list->count; i++)
        graphs_add(capture, list->operation[i].member, &list->operation[i].record);
}

void graph_launch_enter(struct call *call, cudaGraphExec_t exec, cudaStream_t stream)
{
    static const char unseen[] = "what a CUDA graph does that was made before the shim watched";
    if (!handles_has(&shim.graphs, (uintptr_t)exec)) {
        struct call notice = *call;
        notice.api = API_notice_blind;
        notice_blind(&notice, ncclSuccess, unseen);
        handles_add(&shim.graphs, (uintptr_t)exec);
    }
    if (!atomic_load_explicit(&graphs.keys, memory_order_relaxed))
        return;
    lock();
    struct list *list = reference(KEY_EXEC, (uintptr_t)exec);
    unlock();
    if (!list)
        return;
    if (gpu_is_capturing(stream))
        pass_on(list, stream);
    else if (!call->thread->group_depth)
        replay(call, list, stream);
    lock();
    list_drop(list);
    unlock();
}

void graph_launch_leave(struct call *call, cudaError_t result, cudaGraphExec_t exec,
                        cudaStream_t stream)
{
    if (call->enter) {
        struct call part = *call;
        part.flags |= RECORD_FLAG_REPLAY;
        part.api = API_ncclGroupEnd;
        group_end_leave(&part, result == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError);
    }
    call->enter = 0;
    point_graph(call, result, stream, 0, (uintptr_t)exec);
}
