/* profiler.c: makes records of what NCCL reports to a profiler plugin.
 *
 * NCCL calls from the program's threads, from its own and from CUDA's callback thread, where CUDA
 * must not be called: nothing here queries CUDA but profiler_init. */
#include "interpose/plugin/profiler.h"

#include <dlfcn.h>
#include <string.h>

#include "interpose/shim/comms.h"
#include "interpose/calls/begin.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/real/gpu.h"
#include "interpose/process/monitor.h"
#include "interpose/progress/progress.h"
#include "interpose/progress/progress_host.h"
#include "interpose/real/resolve.h"
#include "lib/trace/lacks.h"
#include "lib/trace/unseen.h"

enum kind {
    KIND_NONE,
    KIND_GROUP_API,
    KIND_CALL,
    KIND_MESSAGE_CALL,
    KIND_PLAN,
    KIND_TASK,
    KIND_CHANNEL,
    KIND_COPY_ENGINE /* the last that fits into 3 bits */
};
enum { PEERS_UNKNOWN = 65536 }; /* ranks that a communicator of unknown size may have */

/* What a handle holds; it is not a pointer. */
struct event_handle {
    enum kind kind;
    bool captured;
    uint8_t channels;
    uint32_t slot;
    uint64_t launch;
};

static void *pack_handle(const struct event_handle *handle)
{
    uint64_t slot = handle->slot == RECORD_NO_SLOT ? 0 : handle->slot + 1;
    return (void *)(uintptr_t)(handle->kind | (uint64_t)handle->captured << 3 |
                               (uint64_t)handle->channels << 4 | slot << 12 | handle->launch << 21);
}

_Static_assert(RING_SLOTS_MAX + 1 < 1 << 9, "a slot has 9 bits");

static struct event_handle unpack_handle(const void *packed)
{
    uint64_t bits = (uintptr_t)packed;
    uint32_t slot = bits >> 12 & 0x1ff;
    return (struct event_handle){.kind = bits & 7,
                                 .captured = bits >> 3 & 1,
                                 .channels = bits >> 4 & 0xff,
                                 .slot = slot ? slot - 1 : RECORD_NO_SLOT,
                                 .launch = bits >> 21};
}

/* Preloaded, the wrappers are found by everybody. */
static bool find_preloaded(void)
{
    resolve_dlsym_function *find = resolve_dlsym();
    void *everybody = dlopen(NULL, RTLD_LAZY),
         *found = find && everybody ? find(everybody, "ddpcheck_hash") : NULL;
    Dl_info theirs, ours;
    return found && dladdr(found, &theirs) && dladdr((void *)profiler_init, &ours) &&
           theirs.dli_fbase == ours.dli_fbase;
}

static bool is_preloaded(void)
{
    return atomic_load_explicit(&shim.profiled, memory_order_relaxed) & PROFILED_PRELOADED;
}

/* A process can have NCCL twice, shared and linked in. Whether the one that calls from `site` is
 * the one that the wrappers forward to. */
static bool wrappers_record(const void *site)
{
    Dl_info caller, real;
    if (!(atomic_load(&shim.used) & USED_NCCL) || !dladdr(site, &caller))
        return false;
    for (int id = 0; id < CALL_COUNT; id++) {
        const void *address = NULL;
        if (resolve_symbols[id].library == LIBRARY_NCCL)
            address = atomic_load(&resolved.call[RUNTIME_DEFAULT][id]);
        if (address && dladdr(address, &real))
            return real.dli_fbase == caller.dli_fbase;
    }
    return false;
}

/* That of a P2P_API event holds the call's stream instead. */
static void *pack_stream(const void *stream, bool captured)
{
    return (void *)(KIND_MESSAGE_CALL | (uintptr_t)captured << 3 | (uintptr_t)stream << 4);
}

static const void *unpack_stream(const void *packed)
{
    return (const void *)((uintptr_t)packed >> 4);
}

static bool begin_profiled_call(struct recorded_call *call, enum api api,
                                struct profiler_place place)
{
    return call_begin(call, api, false, false, place.site, place.frame);
}

static void emit_member(struct shim_thread *thread, struct local_member *member)
{
    struct record record = {.comm = {.comm = member->comm,
                                     .handle = (uintptr_t)atomic_load(&member->handle),
                                     .nranks = member->nranks == PEERS_UNKNOWN ? 0 : member->nranks,
                                     .rank = member->rank,
                                     .device = member->device,
                                     .gpu = member->gpu}};
    emit_notice(thread, &record, API_notice_member);
}

static struct local_member *add_profiled_member(void *context, uint64_t comm_hash, int ranks,
                                                int rank, int device)
{
    struct pending_init init = {.comm = comm_hash,
                                .rank = rank,
                                .nranks = ranks > 0 ? ranks : PEERS_UNKNOWN,
                                .device = device,
                                .gpu = gpu_identity(device)};
    return comms_add(context, &init);
}

/* For the ring file, which the first call to get this far makes. */
static void set_missing_fields(int wanted)
{
    bool calls = wanted & PROFILE_COLL_API, preloaded = find_preloaded();
    uint32_t missing = LACKS_REDOP | LACKS_SETUP | LACKS_PAYLOAD, none = 0;
    if (!preloaded)
        missing |= LACKS_CUDA | LACKS_MARKS | LACKS_DEVICE;
    if (calls || preloaded)
        missing |= LACKS_ADDRESSES;
    if (!calls)
        missing |= LACKS_STREAM | LACKS_GROUP;
    if (!(wanted & PROFILE_KERNEL_CH))
        missing |= LACKS_STATE;
    atomic_compare_exchange_strong(&shim.missing_fields, &none, missing);
}

void profiler_init(struct profiler_place place, void **context, int *mask, int wanted,
                   uint64_t comm_hash, int ranks, int rank)
{
    static _Atomic uintptr_t contexts;
    struct recorded_call call;
    *context = NULL;
    *mask = 0;
    if (wrappers_record(place.site))
        return;
    set_missing_fields(wanted);
    if (!call_begin(&call, API_notice_member, true, false, place.site, place.frame))
        return;
    *mask = wanted;
    *context = (void *)((uintptr_t)1 << 62 | (atomic_fetch_add(&contexts, 1) + 1) << 4);
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(
            &shim.profiled, &none, PROFILED_YES | (find_preloaded() ? PROFILED_PRELOADED : 0))) {
        monitor_start();
        progress_prepare_host();
    }
    struct local_member *member = comm_hash ? add_profiled_member(*context, comm_hash, ranks, rank,
                                                                  gpu_thread_device(call.thread))
                                            : NULL;
    if (member)
        emit_member(call.thread, member);
    call_end(&call);
}

void profiler_finalize(void *context)
{
    struct local_member *member = comms_find(context);
    if (member)
        comms_remove(member);
}

/* A group gets its records when the first operation is in it. */
static void open_group(struct recorded_call *call)
{
    struct shim_thread *thread = call->thread;
    struct recorded_call start = {
        .thread = thread, .api = API_ncclGroupStart, .site = call->site, .frame = call->frame};
    struct record record = {0};
    emit_prepare(&start, &record, RECORD_POINT, NULL);
    record.group.group = thread->group = record.serial;
    record.group.depth = 1;
    thread->group_calls = 0;
    emit(thread, &record, RING_CONTROL);
}

static void close_group(struct profiler_place place)
{
    struct recorded_call call;
    if (!thread_self.group || !begin_profiled_call(&call, API_ncclGroupEnd, place))
        return;
    struct record record = {
        .group = {.group = call.thread->group, .depth = 1, .calls = call.thread->group_calls}};
    call.thread->group = 0;
    emit_enter(&call, &record, NULL);
    emit_leave(&call, ncclSuccess, 0);
    call_end(&call);
}

void *profiler_group_api(int depth)
{
    if (depth > 1 && atomic_load(&shim.state) == SHIM_ACTIVE)
        thread_self.in_group_api = true;
    return pack_handle(&(struct event_handle){.kind = KIND_GROUP_API, .slot = RECORD_NO_SLOT});
}

void *profiler_plan(void)
{
    return pack_handle(&(struct event_handle){.kind = KIND_PLAN, .slot = RECORD_NO_SLOT});
}

/* The communicator of an event; with v1 to v3 it is made by its first. */
static struct local_member *find_or_add_member(struct recorded_call *call, void *context,
                                               const struct profiler_task *task)
{
    struct local_member *member = comms_find(context);
    if (!member && context && task->comm_hash) {
        member = add_profiled_member(context, task->comm_hash, -1, task->rank, RECORD_NO_DEVICE);
        if (member)
            emit_member(call->thread, member);
    }
    return member;
}

static bool number_task(struct record *record, struct local_member *member,
                        const struct profiler_task *task)
{
    if (task->captured)
        record->op.number = atomic_load_explicit(&member->number, memory_order_relaxed);
    else if (task->api == API_ncclSend || task->api == API_ncclRecv)
        return comms_p2p_number(member, task->root, task->api == API_ncclRecv, &record->op.number);
    else
        record->op.number = atomic_fetch_add_explicit(&member->number, 1, memory_order_relaxed);
    return true;
}

/* Buffers without their stream can be compared with each other, but not put in order with the
 * program's own copies and kernels, which the wrappers see where they are preloaded. */
static void set_buffers(struct record *record, const struct profiler_task *task)
{
    if (is_preloaded() || !(task->send || task->recv)) {
        record->op.flags = RECORD_OP_NO_BUFFERS;
        return;
    }
    record->op.sendbuff = (uintptr_t)task->send;
    record->op.recvbuff = (uintptr_t)task->recv;
}

/* Where the stream is not reported each communicator has one of its own: NCCL orders its launches.
 * It is not a handle of CUDA, so CUDA is not queried about it. */
static void enter_task(struct recorded_call *call, struct record *record,
                       const struct profiler_task *task, struct local_member *member)
{
    if (task->has_stream) {
        emit_enter(call, record, task->stream);
        emit_issued(member);
        return;
    }
    emit_describe(call, record, RECORD_ENTER, NULL);
    record->stream = (uintptr_t)atomic_load_explicit(&member->handle, memory_order_relaxed);
    emit_late(call->thread, record);
    emit_issued(member);
    call->enter = record->serial;
}

/* Records the operation and notes in the handle where its progress will be. */
static void record_operation(struct recorded_call *call, struct local_member *member,
                             const struct profiler_task *task, bool grouped,
                             struct event_handle *handle)
{
    struct shim_thread *thread = call->thread;
    struct record record = {.op = {.comm = member->comm,
                                   .count = task->count,
                                   .datatype = task->datatype,
                                   .redop = REDOP_UNKNOWN,
                                   .root = task->root,
                                   .slot = RECORD_NO_SLOT,
                                   .rank = member->rank}};
    if (!number_task(&record, member, task))
        return;
    set_buffers(&record, task);
    if (grouped && !thread->group)
        open_group(call);
    if (grouped) {
        record.op.group = thread->group;
        thread->group_calls++;
    }
    if (task->captured) {
        record.flags = RECORD_FLAG_CAPTURE;
    } else {
        record.op.slot = handle->slot =
            progress_slot(member, (cudaStream_t)(uintptr_t)task->stream);
        record.op.launch = handle->launch = progress_take_launch(handle->slot);
    }
    call->comm = member->comm;
    enter_task(call, &record, task, member);
    emit_leave(call, ncclSuccess, 0);
}

/* As record_operation, with all that has to be around it. */
static void record_task(struct profiler_place place, void *context,
                        const struct profiler_task *task, bool grouped, struct event_handle *handle)
{
    struct recorded_call call;
    if (task->api == API_NONE || !begin_profiled_call(&call, task->api, place))
        return;
    /* Of a graph's operations NCCL reports from a host function, on a thread of CUDA's. */
    bool in_callback = call.thread->in_callback;
    call.thread->in_callback = in_callback || call.thread->device < 0;
    struct local_member *member = find_or_add_member(&call, context, task);
    if (member) {
        int32_t device = call.thread->device;
        call.thread->device = member->device;
        record_operation(&call, member, task, grouped, handle);
        call.thread->device = device;
    }
    call.thread->in_callback = in_callback;
    call_end(&call);
}

static void report_replays(struct profiler_place place)
{
    static const char text[] = "collectives that a CUDA graph launches again: NCCL's profiler "
                               "interface reports them on some ranks only";
    struct recorded_call call;
    if (atomic_load(&shim.profiled) & PROFILED_REPLAYS ||
        !begin_profiled_call(&call, API_notice_blind, place))
        return;
    if (!(atomic_fetch_or(&shim.profiled, PROFILED_REPLAYS) & PROFILED_REPLAYS)) {
        struct record record = {0};
        record.range.text = emit_string(call.thread, text, sizeof text - 1);
        record.range.id = UNSEEN_GRAPH;
        emit_notice(call.thread, &record, API_notice_blind);
    }
    call_end(&call);
}

void *profiler_message_call(struct profiler_place place, const void *stream, bool captured)
{
    if (captured)
        report_replays(place);
    return pack_stream(stream, captured);
}

void *profiler_call(struct profiler_place place, void *context, const struct profiler_task *task)
{
    struct event_handle handle = {
        .kind = KIND_CALL, .captured = task->captured, .slot = RECORD_NO_SLOT};
    record_task(place, context, task, thread_self.in_group_api, &handle);
    if (task->captured)
        report_replays(place);
    return pack_handle(&handle);
}

/* A COLL whose call was recorded adds only how many channels work on it. Sends and receives of
 * one launch go on together, as in a group; those of a graph are reported at each replay, on some
 * ranks. */
void *profiler_task(struct profiler_place place, void *context, void *parent,
                    const struct profiler_task *task)
{
    struct event_handle handle = unpack_handle(parent), call = handle;
    struct profiler_task with_stream = *task;
    bool is_message = task->api == API_ncclSend || task->api == API_ncclRecv;
    if (call.kind == KIND_MESSAGE_CALL) {
        with_stream.stream = unpack_stream(parent);
        with_stream.has_stream = true;
    }
    if (call.kind != KIND_CALL)
        handle = (struct event_handle){.captured = call.kind == KIND_MESSAGE_CALL && call.captured,
                                       .slot = RECORD_NO_SLOT};
    handle.kind = KIND_TASK;
    handle.channels = task->channels;
    if (call.kind != KIND_CALL && !handle.captured)
        record_task(place, context, &with_stream, is_message, &handle);
    return pack_handle(&handle);
}

void *profiler_channel(void *parent)
{
    struct event_handle handle = unpack_handle(parent);
    if (handle.kind != KIND_TASK || handle.captured || atomic_load(&shim.state) != SHIM_ACTIVE)
        return NULL;
    progress_host_started(handle.slot, handle.launch);
    handle.kind = KIND_CHANNEL;
    return pack_handle(&handle);
}

void *profiler_copy_engine(void *parent)
{
    struct event_handle handle = unpack_handle(parent);
    if (handle.kind != KIND_CALL || handle.captured || atomic_load(&shim.state) != SHIM_ACTIVE)
        return NULL;
    progress_host_started(handle.slot, handle.launch);
    handle.kind = KIND_COPY_ENGINE;
    return pack_handle(&handle);
}

void profiler_state(struct profiler_place place, void *packed, int state)
{
    if (state != PROFILE_STATE_GROUP_END_BEGINS || unpack_handle(packed).kind != KIND_GROUP_API)
        return;
    thread_self.in_group_api = false;
    close_group(place);
}

void profiler_stop(struct profiler_place place, void *packed)
{
    struct event_handle handle = unpack_handle(packed);
    switch (handle.kind) {
    case KIND_GROUP_API:
        thread_self.in_group_api = false;
        close_group(place);
        break;
    case KIND_PLAN:
        if (!thread_self.in_group_api)
            close_group(place);
        break;
    case KIND_CHANNEL:
    case KIND_COPY_ENGINE:
        if (atomic_load(&shim.state) == SHIM_ACTIVE)
            progress_host_done(handle.slot, handle.launch, handle.channels);
        break;
    default:
        break;
    }
}
