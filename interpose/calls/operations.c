/* operations.c: records collectives, sends and receives. */
#include "interpose/calls/operations.h"

#include "interpose/memory/buffers.h"
#include "interpose/calls/communicators.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/ring/guard.h"
#include "interpose/real/gpu.h"
#include "interpose/graphs/graphs.h"
#include "interpose/hash/hashing.h"
#include "interpose/progress/progress.h"
#include "interpose/calls/recording.h"
#include "interpose/calls/refuse.h"
#include "interpose/memory/selection.h"
#include "interpose/stacks/python_exit.h"
#include "interpose/timing/timing.h"
#include "lib/trace/kinds.h"

/* A handle of ncclRedOpCreatePreMulSum may differ between ranks that mean the same: its scalar
 * counts. A handle can have any value, REDOP_NONE's too. */
static void set_redop(struct record *record, unsigned api, ncclComm_t comm, int redop)
{
    bool reduces = kind_has(api, KIND_REDUCES);
    record->op.redop = reduces ? (uint8_t)redop : REDOP_NONE;
    if (!reduces || (redop >= 0 && redop < ncclNumOps))
        return;
    const struct premul *premul = comms_premul_find(comm, redop);
    record->op.redop = premul ? REDOP_PREMULSUM : REDOP_UNKNOWN;
    record->op.scalar = premul ? premul->scalar : (uint64_t)redop;
    if (premul && premul->on_device)
        record->op.flags |= RECORD_OP_SCALAR_ON_DEVICE;
}

/* What a call on a communicator that has ended was meant for. */
static void set_ended(struct record *record, ncclComm_t comm)
{
    const struct local_member *member = comms_find_ended(comm);
    if (!member)
        return;
    record->flags |= RECORD_FLAG_GONE;
    record->op.comm = member->comm;
    record->op.rank = member->rank;
}

/* A wait has the number of the last signal that it waits for. */
static bool number_signals(struct record *record, const struct local_member *member, bool waits)
{
    uint64_t signals = waits ? record->op.count : 1, before;
    if (!comms_signal_number(member, record->op.root, record->result, waits, signals, &before))
        return false;
    record->op.number = before + signals - 1;
    return true;
}

/* The operation's number. What only becomes part of a graph is numbered when the graph is launched;
 * until then it holds the count so far. Returns false if the operation can't be numbered. */
static bool number_operation(struct record *record, struct local_member *member,
                             enum operation_way way)
{
    bool captured = record->flags & RECORD_FLAG_CAPTURE;
    if (way == WAY_COLLECTIVE && (captured || !record->op.count))
        record->op.number = atomic_load_explicit(&member->number, memory_order_relaxed);
    else if (way == WAY_COLLECTIVE)
        record->op.number = atomic_fetch_add_explicit(&member->number, 1, memory_order_relaxed);
    else if (!captured && (way == WAY_SIGNAL || way == WAY_WAIT))
        return number_signals(record, member, way == WAY_WAIT);
    else if (!captured)
        return comms_p2p_number(member, record->op.root, way == WAY_RECV, &record->op.number);
    return true;
}

/* The operation's number, and its progress slot unless it only becomes part of a graph. */
static bool set_operation_member(struct recorded_call *call, struct record *record,
                                 struct local_member *member, enum operation_way way,
                                 cudaStream_t stream)
{
    record->op.comm = call->comm = member->comm;
    if (!atomic_load_explicit(&member->announced, memory_order_relaxed))
        communicators_announce(call->thread, member);
    record->op.rank = member->rank;
    if (!number_operation(record, member, way))
        return false;
    if (record->flags & RECORD_FLAG_CAPTURE)
        return true;
    record->op.slot = call->slot = progress_slot(member, stream);
    record->op.launch = progress_next_launch(call->slot);
    return true;
}

/* Of the buffer that a kind uses for all ranks and the one that it uses for one, both are taken to
 * be the longer. */
static void use_buffers(struct shim_thread *thread, uint16_t api, const struct record *record,
                        const struct local_member *member)
{
    const struct kind *kind = kind_find(api);
    bool all_ranks = kind && kind_spans_ranks(kind) && member && member->nranks > 0;
    uint64_t ranks = all_ranks ? (uint64_t)member->nranks : 1;
    uint64_t element = datatype_bytes(record->op.datatype);
    uint64_t bytes = record->op.count * (element ? element : DATATYPE_BYTES_MAX) * ranks;
    if (record->op.sendbuff)
        selection_used(thread, record->op.sendbuff, record->op.sendbuff + bytes);
    if (record->op.recvbuff && record->op.recvbuff != record->op.sendbuff)
        selection_used(thread, record->op.recvbuff, record->op.recvbuff + bytes);
}

/* An operation outside groups is a launch of its own. */
static void begin_single(struct shim_thread *thread, uint32_t slot, uint64_t launch)
{
    progress_begin(thread, slot);
    if (!shim.timing)
        return;
    timing_add(thread, slot, launch, progress_slot_device(slot));
    timing_push(thread);
}

void operation_enter(struct recorded_call *call, ncclComm_t comm, cudaStream_t stream,
                     const struct operation_arguments *operation)
{
    struct shim_thread *thread = call->thread;
    struct record record = {.op = {.sendbuff = (uintptr_t)operation->send,
                                   .recvbuff = (uintptr_t)operation->recv,
                                   .count = operation->count,
                                   .datatype = (uint8_t)operation->type,
                                   .root = operation->root,
                                   .slot = RECORD_NO_SLOT,
                                   .rank = RECORD_NO_RANK},
                            .result = operation->signal};
    uint64_t capture = gpu_capture_id(stream);
    python_exit_forget();
    if (capture)
        record.flags = RECORD_FLAG_CAPTURE;
    if (thread->group_depth) {
        record.op.group = thread->group;
        thread->group_calls++;
    }
    set_redop(&record, call->api, comm, operation->redop);
    struct local_member *member = comms_find(comm);
    call->device = member ? member->device : RECORD_NO_DEVICE;
    if (member && !set_operation_member(call, &record, member, operation->way, stream))
        return;
    if (!member)
        set_ended(&record, comm);
    if (!comm)
        record.op.flags |= RECORD_OP_NULL_COMM;
    if (member && guard_is_on() && operation->way == WAY_COLLECTIVE)
        refuse_if_different(call, &record, member, stream);
    buffers_record(thread, operation->send);
    if (operation->recv != operation->send)
        buffers_record(thread, operation->recv);
    use_buffers(thread, call->api, &record, member);
    if (operation->window) {
        record.op.recvbuff = operation->offset;
        record.op.scalar = operation->window;
    }
    if (operation->config)
        collective_config_record(thread, operation->config);
    emit_enter(call, &record, stream);
    if (call->is_refused)
        return;
    if (member && operation->way == WAY_COLLECTIVE)
        emit_issued(member);
    if (member && capture)
        graphs_add(capture, member, &record);
    if (member && shim.hashing) {
        hashing_operation(thread, member, &record);
        if (!thread->group_depth)
            hashing_before(thread);
    }
    if (call->slot != RECORD_NO_SLOT && thread->group_depth)
        thread->group_slots[call->slot / 64] |= 1ull << call->slot % 64;
    else if (call->slot != RECORD_NO_SLOT)
        begin_single(thread, call->slot, record.op.launch);
}

static enum operation_way way_of(uint16_t api)
{
    bool receives = kind_receives(api);
    if (kind_has(api, KIND_ONE_SIDED))
        return receives ? WAY_WAIT : WAY_SIGNAL;
    if (kind_has(api, KIND_TO_PEER))
        return receives ? WAY_RECV : WAY_SEND;
    return WAY_COLLECTIVE;
}

void operation_replay(struct recorded_call *call, struct local_member *member,
                      const struct record *captured, cudaStream_t stream)
{
    struct shim_thread *thread = call->thread;
    struct record record = {.op = captured->op,
                            .result = captured->result,
                            .stack = captured->stack,
                            .flags = captured->flags & RECORD_FLAG_ADDRESS};
    if (!comms_is_live(member) || member->comm != captured->op.comm)
        return;
    record.op.group = thread->group;
    thread->group_calls++;
    call->slot = RECORD_NO_SLOT;
    if (!set_operation_member(call, &record, member, way_of(captured->api), stream))
        return;
    emit_enter(call, &record, stream);
    emit_issued(member);
    if (call->slot != RECORD_NO_SLOT)
        thread->group_slots[call->slot / 64] |= 1ull << call->slot % 64;
    emit_operation_leave(call, ncclSuccess, member->device);
}

void operation_leave(struct recorded_call *call, ncclResult_t result)
{
    struct shim_thread *thread = call->thread;
    timing_pop(thread);
    if (!call->enter)
        return;
    if (call->slot != RECORD_NO_SLOT && !thread->group_depth)
        progress_end(thread, call->slot, result);
    if (shim.hashing && !thread->group_depth)
        hashing_after(thread, result == ncclSuccess);
    emit_operation_leave(call, result, call->device);
    progress_poll();
}
