/* memory.c: records memory: allocated, registered, shared between processes, mapped, freed. */
#include "interpose/memory/buffers.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/calls/recording.h"
#include "interpose/memory/selection.h"

void memory_enter(struct recorded_call *call, const void *pointer, size_t bytes)
{
    struct record record = {
        .memory = {.pointer = (uintptr_t)pointer, .bytes = bytes, .type = MEMORY_DEVICE}};
    emit_enter(call, &record, NULL);
}

void memory_made_leave(struct recorded_call *call, ncclResult_t result, void *const *pointer,
                       size_t bytes)
{
    uint64_t made = handle_of(result, pointer);
    selection_forget(made, made + bytes);
    emit_leave(call, result, made);
}

void memory_free_leave(struct recorded_call *call, ncclResult_t result)
{
    buffers_forget(0);
    emit_leave(call, result, 0);
}

void memory_allocated(struct recorded_call *call, cudaError_t result, void *const *pointer,
                      size_t bytes, enum memory_type type, cudaStream_t stream)
{
    struct record record = {
        .memory = {.pointer = result == cudaSuccess && pointer ? (uintptr_t)*pointer : 0,
                   .bytes = bytes,
                   .type = type}};
    selection_forget(record.memory.pointer, record.memory.pointer + bytes);
    emit_point(call, &record, result, stream);
}

void memory_pitched(struct recorded_call *call, cudaError_t result, void *const *pointer,
                    const size_t *pitch, size_t rows)
{
    size_t bytes = result == cudaSuccess ? *pitch * rows : 0;
    memory_allocated(call, result, pointer, bytes, MEMORY_DEVICE, 0);
}

void memory_registered(struct recorded_call *call, cudaError_t result, const void *pointer,
                       size_t bytes)
{
    buffers_forget((uintptr_t)pointer);
    struct record record = {
        .memory = {.pointer = (uintptr_t)pointer, .bytes = bytes, .type = MEMORY_HOST_PINNED}};
    emit_point(call, &record, result, NULL);
}

void memory_released(struct recorded_call *call, cudaError_t result, const void *pointer,
                     enum memory_type type, cudaStream_t stream)
{
    if (result == cudaSuccess)
        buffers_forget((uintptr_t)pointer);
    struct record record = {.memory = {.pointer = (uintptr_t)pointer, .type = type}};
    record.flags |= gpu_capture_flag(stream);
    emit_point(call, &record, result, stream);
}

/* The analyzer adds up what is reserved, mapped and unmapped; pointers into it are queried
 * anew. */
void memory_mapped(struct recorded_call *call, cudaError_t result, uint64_t pointer, size_t bytes)
{
    struct record record = {.memory = {.pointer = pointer, .bytes = bytes, .type = MEMORY_DEVICE}};
    buffers_forget(pointer);
    selection_forget(pointer, pointer + bytes);
    emit_point(call, &record, result, NULL);
}

/* The handle's bytes are the same in the process that opens it: their hash identifies the
 * allocation. */
static void record_shared(struct recorded_call *call, cudaError_t result,
                          const cudaIpcMemHandle_t *handle, uint64_t pointer)
{
    struct gpu_memory memory = {.base = 0};
    struct record record = {.memory = {.type = MEMORY_DEVICE}};
    if (result == cudaSuccess) {
        gpu_memory_find(pointer, &memory);
        record.memory.pointer = memory.base;
        record.memory.bytes = memory.bytes;
        record.memory.handle = string_id((const char *)handle, sizeof *handle);
        if (call->api == API_cudaIpcOpenMemHandle)
            selection_forget(memory.base, memory.base + memory.bytes);
    }
    emit_point(call, &record, result, NULL);
}

void ipc_handle_made(struct recorded_call *call, cudaError_t result,
                     const cudaIpcMemHandle_t *handle, uint64_t pointer)
{
    record_shared(call, result, handle, pointer);
}

void ipc_handle_opened(struct recorded_call *call, cudaError_t result, void *const *pointer,
                       const cudaIpcMemHandle_t *handle)
{
    buffers_forget(result == cudaSuccess && pointer ? (uintptr_t)*pointer : 0);
    record_shared(call, result, handle, result == cudaSuccess && pointer ? (uintptr_t)*pointer : 0);
}
