/* emit_call.c: makes the records of a call, with its stack and stream, and emits them. */
#include "interpose/record/emit_call.h"

#include <string.h>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "interpose/real/resolve.h"
#include "interpose/record/streams.h"
#include "interpose/record/workload.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/guard.h"
#include "interpose/stacks/stacks.h"

enum { LAST_ERROR_BYTES = 512 };

static bool announces_tensor(uint16_t api)
{
    return api == API_ddpcheck_hash || api == API_ddpcheck_save || api == API_ddpcheck_modify ||
           api == API_ddpcheck_use;
}

/* NCCL's calls, host waits and what announces a tensor are worth a whole stack; what else may be a
 * side of a hazard, or allocates the memory that one is about, the program's line. */
static enum stack_depth depth_by_default(uint16_t api)
{
    switch (emit_class(api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_COMM:
    case CLASS_REDOP:
    case CLASS_QUERY:
    case CLASS_WAIT:
        return STACK_WHOLE;
    case CLASS_COPY:
    case CLASS_LAUNCH:
    case CLASS_MEMORY:
    case CLASS_GRAPH:
        return api == API_ncclMemAlloc || api == API_ncclMemFree ? STACK_WHOLE : STACK_LINE;
    default:
        if (api == API_cudaStreamDestroy)
            return STACK_LINE;
        return announces_tensor(api) ? STACK_WHOLE : STACK_SITE;
    }
}

static enum stack_depth depth_of_call(uint16_t api)
{
    if (shim.stacks == STACKS_ALL || shim.stacks == STACKS_OFF)
        return shim.stacks == STACKS_ALL ? STACK_WHOLE : STACK_SITE;
    enum stack_depth depth = depth_by_default(api);
    return depth == STACK_LINE && shim.stacks == STACKS_NCCL ? STACK_SITE : depth;
}

void emit_describe(struct recorded_call *call, struct record *record, enum record_phase phase,
                   const void *stream)
{
    if (!record->stack) { /* a replayed call has that of its capture */
        record->stack =
            stacks_take(call->thread, call->site, call->frame, depth_of_call(call->api));
        if (!record->stack) {
            record->stack = (uintptr_t)call->site;
            record->flags |= RECORD_FLAG_ADDRESS;
        }
    }
    record->stream = (uintptr_t)stream;
    if (!stream && call->per_thread)
        record->stream = (uintptr_t)cudaStreamPerThread;
    record->flags |= call->flags;
    emit_name(call->thread, record, call->api, phase);
}

void emit_prepare(struct recorded_call *call, struct record *record, enum record_phase phase,
                  const void *stream)
{
    emit_describe(call, record, phase, stream);
    if (emit_class(call->api) != CLASS_STREAM)
        streams_record(call->thread, record->stream);
    emit_stamp(record);
}

void emit_enter(struct recorded_call *call, struct record *record, const void *stream)
{
    emit_prepare(call, record, RECORD_ENTER, stream);
    call->enter = record->serial;
    emit(call->thread, record, emit_ring(call->api));
}

static bool is_nccl(uint16_t api)
{
    switch (emit_class(api)) {
    case CLASS_COLLECTIVE:
    case CLASS_P2P:
    case CLASS_GROUP:
    case CLASS_COMM:
    case CLASS_REDOP:
        return true;
    default:
        return api == API_ncclMemAlloc || api == API_ncclMemFree;
    }
}

/* The string id of what NCCL says about its last error. It keeps one text for the process, so that
 * of another thread may stand there. */
static uint64_t emit_last_error(struct shim_thread *thread)
{
    __typeof__(&ncclGetLastError) last_error = REAL_CALL(ncclGetLastError);
    const char *said = guard_said(thread);
    if (!said && last_error)
        said = last_error(NULL);
    char text[LAST_ERROR_BYTES];
    size_t bytes = said ? strnlen(said, sizeof text) : 0;
    if (!bytes)
        return 0;
    memcpy(text, said, bytes);
    return emit_said(thread, text, bytes);
}

/* The ENTER has the call's stack and stream. */
static void emit_left(struct recorded_call *call, int result, struct record *record)
{
    record->result = result;
    record->leave.enter = call->enter;
    record->leave.comm = call->comm;
    if (__builtin_expect(result != ncclSuccess && result != ncclInProgress, 0) &&
        is_nccl(call->api))
        record->leave.text = emit_last_error(call->thread);
    record->flags |= call->flags;
    emit_name(call->thread, record, call->api, RECORD_LEAVE);
    emit_stamp(record);
    emit(call->thread, record, emit_ring(call->api));
}

void emit_leave(struct recorded_call *call, int result, uint64_t handle)
{
    struct record record = {.leave = {.handle = handle}};
    emit_left(call, result, &record);
}

void emit_operation_leave(struct recorded_call *call, int result, int32_t device)
{
    struct workload work = workload_take(device);
    struct record record = {.leave = {.kernels = work.kernels, .threads = work.threads}};
    emit_left(call, result, &record);
}

void emit_point(struct recorded_call *call, struct record *record, int result, const void *stream)
{
    emit_prepare(call, record, RECORD_POINT, stream);
    record->result = result;
    emit(call->thread, record, emit_ring(call->api));
}
