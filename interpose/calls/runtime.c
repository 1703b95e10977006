/* runtime.c: recording of host waits, streams, events, peer access and plain copies. */
#include "interpose/record/buffers.h"
#include "interpose/record/emit.h"
#include "interpose/progress/gpu.h"
#include "interpose/progress/progress.h"
#include "interpose/record/recording.h"
#include "interpose/record/selection.h"
#include "interpose/calls/streams.h"

void wait_enter(struct call *call, cudaStream_t stream, const struct wait_arguments *arguments)
{
    struct record record = {.wait = {.event = arguments->event,
                                     .dst = arguments->dst,
                                     .src = arguments->src,
                                     .bytes = arguments->bytes,
                                     .kind = arguments->kind,
                                     .dst_pitch = arguments->dst_pitch,
                                     .src_pitch = arguments->src_pitch,
                                     .height = arguments->height}};
    emit_enter(call, &record, stream);
}

void wait_leave(struct call *call, cudaError_t result)
{
    emit_leave(call, result, 0);
    progress_poll();
}

void wait_free_leave(struct call *call, cudaError_t result, const struct wait_arguments *arguments)
{
    if (result == cudaSuccess)
        buffers_forget(arguments->dst);
    wait_leave(call, result);
}

void stream_created(struct call *call, cudaError_t result, const cudaStream_t *stream,
                    unsigned flags)
{
    struct record record = {.event = {.flags = flags}};
    emit_point(call, &record, result, result == cudaSuccess && stream ? *stream : NULL);
    if (result == cudaSuccess && stream) {
        streams_made((uintptr_t)*stream);
        selection_stream(call->thread, (uintptr_t)*stream, flags);
    }
}

void stream_destroyed(struct call *call, cudaError_t result, cudaStream_t stream)
{
    struct record record = {.event = {.event = 0}};
    if (result == cudaSuccess) {
        streams_gone((uintptr_t)stream);
        selection_stream_gone((uintptr_t)stream);
    }
    emit_point(call, &record, result, stream);
}

void event_created(struct call *call, cudaError_t result, const cudaEvent_t *event, unsigned flags)
{
    struct record record = {
        .event = {.event = result == cudaSuccess && event ? (uintptr_t)*event : 0, .flags = flags}};
    emit_point(call, &record, result, NULL);
}

void point_event(struct call *call, cudaError_t result, cudaStream_t stream, cudaEvent_t event,
                 unsigned flags)
{
    struct record record = {.event = {.event = (uintptr_t)event, .flags = flags}};
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
}

/* "Not yet" is asked for in loops and says nothing. */
void query_answered(struct call *call, cudaError_t result, cudaStream_t stream, cudaEvent_t event)
{
    if (result == cudaSuccess)
        point_event(call, result, stream, event, 0);
}

void peer_access_changed(struct call *call, cudaError_t result, int peer)
{
    struct record record = {.device_access = {.peer = peer}};
    emit_point(call, &record, result, NULL);
}

/* From the first row's first byte to the last one's last. */
static struct touch touch_of(struct thread *thread, uint64_t begin, uint64_t pitch,
                             const struct copy_arguments *arguments, bool written)
{
    struct buffer_fact fact = {.base = begin};
    uint64_t rows = arguments->height ? arguments->height : 1;
    if (begin && arguments->bytes)
        buffers_look(thread, begin, &fact);
    return (struct touch){begin, begin + (rows - 1) * pitch + arguments->bytes, fact.base, written};
}

/* The source of a memset is a value, that of a copy from another device is told: access to it may
 * be missing. */
static bool is_kept(struct call *call, struct record *record, cudaStream_t stream,
                    const struct copy_arguments *arguments)
{
    struct thread *thread = call->thread;
    struct touch touch[2];
    int count = 0;
    bool copies = arguments->kind || call->api == API_cudaMemcpyAsync;
    if (call->api == API_cudaMemcpyPeerAsync || call->api == API_cudaMemcpy3DPeerAsync ||
        !arguments->bytes)
        return false;
    if (arguments->dst)
        touch[count++] = touch_of(thread, arguments->dst, arguments->dst_pitch, arguments, true);
    if (arguments->src && copies)
        touch[count++] = touch_of(thread, arguments->src, arguments->src_pitch, arguments, false);
    return selection_keeps(call, record, stream, touch, count);
}

void point_copy(struct call *call, cudaError_t result, cudaStream_t stream,
                const struct copy_arguments *arguments)
{
    struct record record = {.result = result,
                            .copy = {.dst = arguments->dst,
                                     .src = arguments->src,
                                     .bytes = arguments->bytes,
                                     .kind = arguments->kind,
                                     .dst_pitch = arguments->dst_pitch,
                                     .src_pitch = arguments->src_pitch,
                                     .height = arguments->height}};
    record.flags |= gpu_capture_flag(stream);
    if (!is_kept(call, &record, stream, arguments))
        emit_point(call, &record, result, stream);
}

/* "For transfers from device memory to pageable host memory, the function will return only once the
 * copy has completed": CUDA runtime API, "API synchronization behavior", asynchronous memcpy. */
static bool blocks_host(struct thread *thread, const struct copy_arguments *arguments)
{
    if (arguments->kind != cudaMemcpyDeviceToHost && arguments->kind != cudaMemcpyDefault)
        return false;
    return !buffers_tell_if_known(thread, arguments->dst) &&
           (arguments->kind == cudaMemcpyDeviceToHost ||
            buffers_tell_if_known(thread, arguments->src));
}

void copy_enter(struct call *call, cudaStream_t stream, const struct copy_arguments *arguments)
{
    if (!blocks_host(call->thread, arguments) || gpu_capture_flag(stream))
        return;
    call->api = API_cudaMemcpyAsync_to_pageable;
    wait_enter(call, stream,
               &(struct wait_arguments){.dst = arguments->dst,
                                        .src = arguments->src,
                                        .bytes = arguments->bytes,
                                        .kind = arguments->kind});
}

void copy_leave(struct call *call, cudaError_t result, cudaStream_t stream,
                const struct copy_arguments *arguments)
{
    if (call->api == API_cudaMemcpyAsync_to_pageable)
        wait_leave(call, result);
    else
        point_copy(call, result, stream, arguments);
}
