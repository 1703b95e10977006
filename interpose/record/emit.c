/* emit.c: making records and appending them. See emit.h. */
#include "interpose/record/emit.h"

#include <errno.h>
#include <time.h>

#include <cuda_runtime_api.h>

#include "interpose/stacks/stacks.h"
#include "interpose/calls/streams.h"

static const uint8_t class_of[API_COUNT] = {
#define API(number, name, class) [number] = CLASS_##class,
#include "lib/trace/apis.def"
#undef API
};

int emit_ring(uint16_t api)
{
    switch (class_of[api]) {
    case CLASS_COPY:
    case CLASS_LAUNCH:
    case CLASS_RANGE:
        return RING_BULK;
    default:
        return RING_CONTROL;
    }
}

bool call_begin_active(struct call *call, bool wakes)
{
    struct thread *thread = &thread_self;
    thread->inside = 1;
    atomic_signal_fence(memory_order_seq_cst);
    call->error = errno;
    if (wakes && !atomic_load_explicit(&shim.nccl_called, memory_order_relaxed))
        atomic_store_explicit(&shim.nccl_called, 1, memory_order_relaxed);
    if (call->api != API_ncclGetUniqueId && call->api != API_ncclGroupStart &&
        !atomic_load_explicit(&shim.cuda_used, memory_order_relaxed))
        atomic_store_explicit(&shim.cuda_used, 1, memory_order_relaxed);
    if (atomic_load_explicit(&shim.state, memory_order_acquire) != SHIM_ACTIVE &&
        !(wakes && shim_wake()))
        goto pass;
    if (!thread->attached && !thread_attach(thread))
        goto pass;
    if (!thread->segment)
        thread_retry(thread);
    call->thread = thread;
    return true;
pass:
    errno = call->error;
    atomic_signal_fence(memory_order_seq_cst);
    thread->inside = 0;
    return false;
}

void call_end(struct call *call)
{
    errno = call->error;
    atomic_signal_fence(memory_order_seq_cst);
    call->thread->inside = 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void stamp(struct record *record)
{
    record->time_ns = now_ns();
    record->serial = atomic_fetch_add_explicit(&shim.file->serial, 1, memory_order_relaxed) + 1;
}

static void name(struct thread *thread, struct record *record, uint16_t api,
                 enum record_phase phase)
{
    record->api = api;
    record->phase = (uint8_t)phase;
    record->thread = thread->id;
    record->device = thread_device(thread);
}

static void prepare(struct thread *thread, struct record *record, uint16_t api,
                    enum record_phase phase)
{
    name(thread, record, api, phase);
    stamp(record);
}

static bool tells_a_tensor(uint16_t api)
{
    return api == API_ddpcheck_save || api == API_ddpcheck_modify || api == API_ddpcheck_use;
}

enum api_class emit_class(uint16_t api)
{
    return class_of[api];
}

void emit_describe(struct call *call, struct record *record, enum record_phase phase,
                   const void *stream)
{
    if (phase != RECORD_LEAVE) {
        bool wanted = call->api < 80 || call->api == API_ddpcheck_hash ||
                      class_of[call->api] == CLASS_WAIT || tells_a_tensor(call->api);
        bool whole = shim.stacks == STACKS_ALL || (shim.stacks == STACKS_NCCL && wanted);
        record->stack = stacks_take(call, whole);
        if (!whole || !record->stack) {
            record->stack = (uintptr_t)call->site;
            record->flags |= RECORD_FLAG_ADDRESS;
        }
    }
    record->stream = (uintptr_t)stream;
    if (!stream && call->per_thread)
        record->stream = (uintptr_t)cudaStreamPerThread;
    record->flags |= call->flags;
    name(call->thread, record, call->api, phase);
}

void emit_prepare(struct call *call, struct record *record, enum record_phase phase,
                  const void *stream)
{
    emit_describe(call, record, phase, stream);
    if (class_of[call->api] != CLASS_STREAM)
        streams_tell(call->thread, record->stream);
    stamp(record);
}

void emit_late(struct thread *thread, struct record *record)
{
    record->thread = thread->id;
    stamp(record);
    emit(thread, record, emit_ring(record->api));
}

bool emit(struct thread *thread, const struct record *record, int ring)
{
    if (!thread->segment) {
        atomic_fetch_add_explicit(&shim.file->lost_threads, 1, memory_order_relaxed);
        return false;
    }
    uint32_t capacity = ring == RING_BULK ? shim.file->bulk_records : shim.file->control_records;
    return ring_append(&thread->segment->ring[ring], thread->records[ring], capacity, record);
}

bool emit_notice(struct thread *thread, struct record *record, enum api api)
{
    prepare(thread, record, (uint16_t)api, RECORD_POINT);
    return emit(thread, record, RING_CONTROL);
}

bool emit_notice_on(struct thread *thread, struct record *record, enum api api, int32_t device)
{
    prepare(thread, record, (uint16_t)api, RECORD_POINT);
    record->device = device;
    return emit(thread, record, RING_CONTROL);
}

uint64_t emit_string(struct thread *thread, const char *text, uint64_t bytes)
{
    uint64_t id = string_id(text, bytes);
    if (known_has(&shim.known_strings, id))
        return id;
    bool told = true;
    uint64_t offset = 0;
    do {
        struct record record = {
            .string = {.id = id, .bytes = (uint32_t)bytes, .offset = (uint32_t)offset}};
        uint64_t piece = bytes - offset < sizeof record.string.text ? bytes - offset
                                                                    : sizeof record.string.text;
        memcpy(record.string.text, text + offset, piece);
        told &= emit_notice(thread, &record, API_notice_string);
        offset += piece;
    } while (offset < bytes);
    if (told)
        known_add(&shim.known_strings, id);
    return id;
}

void emit_enter(struct call *call, struct record *record, const void *stream)
{
    emit_prepare(call, record, RECORD_ENTER, stream);
    call->enter = record->serial;
    emit(call->thread, record, emit_ring(call->api));
}

void emit_leave(struct call *call, int result, uint64_t handle)
{
    struct record record = {.result = result,
                            .leave = {.enter = call->enter, .comm = call->comm, .handle = handle}};
    emit_prepare(call, &record, RECORD_LEAVE, NULL);
    emit(call->thread, &record, emit_ring(call->api));
}

void emit_point(struct call *call, struct record *record, int result, const void *stream)
{
    emit_prepare(call, record, RECORD_POINT, stream);
    record->result = result;
    emit(call->thread, record, emit_ring(call->api));
}
