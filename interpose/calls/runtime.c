/* runtime.c: records host waits, streams, events, peer access and plain copies. */
#include "interpose/memory/buffers.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/real/resolve.h"
#include "interpose/progress/progress.h"
#include "interpose/calls/recording.h"
#include "interpose/memory/selection.h"
#include "interpose/record/streams.h"

/* "The function will return once the pageable buffer has been copied to the staging memory for DMA
 * transfer to device memory, but the DMA to final destination may not have completed": CUDA runtime
 * API, "API synchronization behavior", synchronous memcpy. */
static bool is_staged(struct shim_thread *thread, const struct wait_arguments *arguments)
{
    bool may_be =
        arguments->kind == cudaMemcpyHostToDevice ||
        (arguments->kind == cudaMemcpyDefault && buffers_record_if_known(thread, arguments->dst));
    return may_be && arguments->src && arguments->bytes &&
           !buffers_record_if_known(thread, arguments->src);
}

void wait_enter(struct recorded_call *call, cudaStream_t stream,
                const struct wait_arguments *arguments)
{
    struct record record = {.wait = {.event = arguments->event,
                                     .dst = arguments->dst,
                                     .src = arguments->src,
                                     .bytes = arguments->bytes,
                                     .kind = arguments->kind,
                                     .dst_pitch = arguments->dst_pitch,
                                     .src_pitch = arguments->src_pitch,
                                     .height = arguments->height}};
    if (is_staged(call->thread, arguments))
        record.flags = RECORD_FLAG_PAGEABLE;
    emit_enter(call, &record, stream);
}

void wait_leave(struct recorded_call *call, cudaError_t result)
{
    emit_leave(call, result, 0);
    progress_poll();
}

void context_wait_enter(struct recorded_call *call, CUcontext context)
{
    typedef CUresult get_device(CUdevice * device, CUcontext context);
    get_device *get = (get_device *)resolve_helper(RUNTIME_DEFAULT, HELPER_cuCtxGetDevice_v2);
    CUdevice device;
    if (context && get && get(&device, context) == CUDA_SUCCESS)
        call->thread->device = device;
    wait_enter(call, 0, &(struct wait_arguments){0});
}

void context_wait_leave(struct recorded_call *call, cudaError_t result)
{
    emit_leave(call, result, 0);
    call->thread->device = RECORD_NO_DEVICE; /* the thread's own is queried again */
    call->thread->device_queries = 0;
    progress_poll();
}

void wait_free_leave(struct recorded_call *call, cudaError_t result,
                     const struct wait_arguments *arguments)
{
    if (result == cudaSuccess)
        buffers_forget(arguments->dst);
    if (result == cudaSuccess && call->api == API_cudaDeviceReset)
        progress_device_reset();
    wait_leave(call, result);
}

void stream_created(struct recorded_call *call, cudaError_t result, const cudaStream_t *stream,
                    unsigned flags)
{
    struct record record = {.event = {.flags = flags}};
    emit_point(call, &record, result, result == cudaSuccess && stream ? *stream : NULL);
    if (result == cudaSuccess && stream)
        streams_add(call->thread, (uintptr_t)*stream, flags);
}

void stream_destroyed(struct recorded_call *call, cudaError_t result, cudaStream_t stream)
{
    struct record record = {.event = {.event = 0}};
    if (result == cudaSuccess)
        streams_remove((uintptr_t)stream);
    emit_point(call, &record, result, stream);
}

void event_created(struct recorded_call *call, cudaError_t result, const cudaEvent_t *event,
                   unsigned flags)
{
    struct record record = {
        .event = {.event = result == cudaSuccess && event ? (uintptr_t)*event : 0, .flags = flags}};
    emit_point(call, &record, result, NULL);
}

void point_event(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                 cudaEvent_t event, unsigned flags)
{
    struct record record = {.event = {.event = (uintptr_t)event, .flags = flags}};
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
}

void peer_access_changed(struct recorded_call *call, cudaError_t result, int peer)
{
    struct record record = {.device_access = {.peer = peer}};
    emit_point(call, &record, result, NULL);
}

/* From the first row's first byte to the last one's last. */
static struct touch copy_touch(struct shim_thread *thread, uint64_t begin, uint64_t pitch,
                               const struct copy_arguments *arguments, bool written)
{
    struct buffer_fact fact = {.base = begin};
    uint64_t rows = arguments->height ? arguments->height : 1;
    if (begin && arguments->bytes)
        buffers_find(thread, begin, &fact);
    return (struct touch){begin, begin + (rows - 1) * pitch + arguments->bytes, fact.base, written};
}

/* The source of a memset is a value; a copy from another device is always recorded: access to its
 * memory may be missing. */
static bool keep_copy(struct recorded_call *call, struct record *record, cudaStream_t stream,
                      const struct copy_arguments *arguments)
{
    struct shim_thread *thread = call->thread;
    struct touch touch[2];
    int count = 0;
    bool copies = arguments->kind || call->api == API_cudaMemcpyAsync;
    if (call->api == API_cudaMemcpyPeerAsync || call->api == API_cudaMemcpy3DPeerAsync ||
        !arguments->bytes)
        return false;
    if (arguments->dst)
        touch[count++] = copy_touch(thread, arguments->dst, arguments->dst_pitch, arguments, true);
    if (arguments->src && copies)
        touch[count++] = copy_touch(thread, arguments->src, arguments->src_pitch, arguments, false);
    return selection_keeps(call, record, stream, touch, count);
}

void point_copy(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
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
    if (!keep_copy(call, &record, stream, arguments))
        emit_point(call, &record, result, stream);
}

/* "For transfers from device memory to pageable host memory, the function will return only once the
 * copy has completed": CUDA runtime API, "API synchronization behavior", asynchronous memcpy. */
static bool blocks_host(struct shim_thread *thread, const struct copy_arguments *arguments)
{
    if (arguments->kind != cudaMemcpyDeviceToHost && arguments->kind != cudaMemcpyDefault)
        return false;
    return !buffers_record_if_known(thread, arguments->dst) &&
           (arguments->kind == cudaMemcpyDeviceToHost ||
            buffers_record_if_known(thread, arguments->src));
}

void copy_enter(struct recorded_call *call, cudaStream_t stream,
                const struct copy_arguments *arguments)
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

void copy_leave(struct recorded_call *call, cudaError_t result, cudaStream_t stream,
                const struct copy_arguments *arguments)
{
    if (call->api == API_cudaMemcpyAsync_to_pageable)
        wait_leave(call, result);
    else
        point_copy(call, result, stream, arguments);
}
