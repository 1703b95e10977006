/* runtime.c: recording of the CUDA runtime's waits, streams, events, memory, copies and graphs. */
#include "interpose/buffers.h"
#include "interpose/emit.h"
#include "interpose/gpu.h"
#include "interpose/progress.h"
#include "interpose/recording.h"

void wait_enter(struct call *call, cudaStream_t stream, const struct wait_arguments *arguments)
{
    struct record record = { .wait = { .event = arguments->event, .dst = arguments->dst, .src = arguments->src,
                                       .bytes = arguments->bytes, .kind = arguments->kind } };
    emit_enter(call, &record, stream);
}

void wait_leave(struct call *call, cudaError_t result)
{
    emit_leave(call, result, 0);
    progress_poll();
}

void wait_free_leave(struct call *call, cudaError_t result)
{
    if (result == cudaSuccess)
        buffers_forget();
    wait_leave(call, result);
}

void stream_created(struct call *call, cudaError_t result, const cudaStream_t *stream, unsigned flags)
{
    struct record record = { .event = { .flags = flags } };
    emit_point(call, &record, result, result == cudaSuccess && stream ? *stream : NULL);
}

void event_created(struct call *call, cudaError_t result, const cudaEvent_t *event, unsigned flags)
{
    struct record record = { .event = { .event = result == cudaSuccess && event ? (uintptr_t)*event : 0, .flags = flags } };
    emit_point(call, &record, result, NULL);
}

void point_event(struct call *call, cudaError_t result, cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    struct record record = { .event = { .event = (uintptr_t)event, .flags = flags } };
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
}

/* "Not yet" is asked for in loops and says nothing. */
void query_answered(struct call *call, cudaError_t result, cudaStream_t stream, cudaEvent_t event)
{
    if (result == cudaSuccess)
        point_event(call, result, stream, event, 0);
}

void memory_enter(struct call *call, const void *pointer, size_t bytes)
{
    struct record record = { .memory = { .pointer = (uintptr_t)pointer, .bytes = bytes, .type = MEMORY_DEVICE } };
    emit_enter(call, &record, NULL);
}

void memory_free_leave(struct call *call, ncclResult_t result)
{
    buffers_forget();
    emit_leave(call, result, 0);
}

void memory_allocated(struct call *call, cudaError_t result, void *const *pointer, size_t bytes, enum memory_type type,
                      cudaStream_t stream)
{
    struct record record = { .memory = { .pointer = result == cudaSuccess && pointer ? (uintptr_t)*pointer : 0,
                                         .bytes = bytes, .type = type } };
    emit_point(call, &record, result, stream);
}

void memory_registered(struct call *call, cudaError_t result, const void *pointer, size_t bytes)
{
    buffers_forget();
    struct record record = { .memory = { .pointer = (uintptr_t)pointer, .bytes = bytes, .type = MEMORY_HOST_PINNED } };
    emit_point(call, &record, result, NULL);
}

void memory_released(struct call *call, cudaError_t result, const void *pointer, enum memory_type type,
                     cudaStream_t stream)
{
    if (result == cudaSuccess)
        buffers_forget();
    struct record record = { .memory = { .pointer = (uintptr_t)pointer, .type = type } };
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
}

void peer_access_changed(struct call *call, cudaError_t result, int peer)
{
    struct record record = { .device_access = { .peer = peer } };
    emit_point(call, &record, result, NULL);
}

void point_copy(struct call *call, cudaError_t result, cudaStream_t stream, const struct copy_arguments *arguments)
{
    struct record record = { .copy = { .dst = arguments->dst, .src = arguments->src, .bytes = arguments->bytes,
                                       .kind = arguments->kind, .dst_pitch = arguments->dst_pitch,
                                       .src_pitch = arguments->src_pitch, .height = arguments->height } };
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
}

/* "For transfers from device memory to pageable host memory, the function will return only once the copy has
 * completed": CUDA runtime API, "API synchronization behavior", asynchronous memcpy. */
static bool blocks_host(struct thread *thread, const struct copy_arguments *arguments)
{
    if (arguments->kind != cudaMemcpyDeviceToHost && arguments->kind != cudaMemcpyDefault)
        return false;
    return !buffers_tell_if_known(thread, arguments->dst) &&
           (arguments->kind == cudaMemcpyDeviceToHost || buffers_tell_if_known(thread, arguments->src));
}

void copy_enter(struct call *call, cudaStream_t stream, const struct copy_arguments *arguments)
{
    if (!blocks_host(call->thread, arguments) || gpu_capture_flag(stream))
        return;
    call->api = API_cudaMemcpyAsync_to_pageable;
    wait_enter(call, stream, &(struct wait_arguments){ .dst = arguments->dst, .src = arguments->src,
                                                       .bytes = arguments->bytes, .kind = arguments->kind });
}

void copy_leave(struct call *call, cudaError_t result, cudaStream_t stream, const struct copy_arguments *arguments)
{
    if (call->api == API_cudaMemcpyAsync_to_pageable)
        wait_leave(call, result);
    else
        point_copy(call, result, stream, arguments);
}

void capture_began(struct call *call, cudaError_t result, cudaStream_t stream)
{
    if (result == cudaSuccess)
        atomic_fetch_add(&shim.captures, 1);
    struct record record = { .graph = { .graph = 0 } };
    emit_point(call, &record, result, stream);
}

/* The capture is over whether it succeeded or was invalid; one that began while the shim slept is not
 * in the count. */
void capture_ended(struct call *call, cudaError_t result, cudaStream_t stream, const cudaGraph_t *graph)
{
    int open = atomic_load(&shim.captures);
    while (open > 0 && !atomic_compare_exchange_weak(&shim.captures, &open, open - 1))
        ;
    point_graph(call, result, stream, result == cudaSuccess && graph ? *graph : NULL, NULL);
}

void point_graph(struct call *call, cudaError_t result, cudaStream_t stream, cudaGraph_t graph, cudaGraphExec_t exec)
{
    struct record record = { .graph = { .graph = (uintptr_t)graph, .exec = (uintptr_t)exec } };
    emit_point(call, &record, result, stream);
}
