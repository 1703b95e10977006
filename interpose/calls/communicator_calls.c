/* communicator_calls.c: records calls on a communicator that exists, and its end. */
#include <stddef.h>

#include "abi/nccl_later.h"
#include "interpose/memory/buffers.h"
#include "interpose/calls/communicators.h"
#include "interpose/record/emit_call.h"
#include "interpose/ring/emit.h"
#include "interpose/progress/progress.h"
#include "interpose/calls/recording.h"
#include "interpose/stacks/exceptions.h"

static void enter_with_flags(struct recorded_call *call, ncclComm_t comm, const void *pointer,
                             size_t bytes, uint32_t flags)
{
    const struct local_member *member = comms_find(comm),
                              *ended = member ? NULL : comms_find_ended(comm);
    struct record record = {.comm = {.handle = (uintptr_t)comm,
                                     .nranks = -1,
                                     .rank = RECORD_NO_RANK,
                                     .device = RECORD_NO_DEVICE,
                                     .pointer = (uintptr_t)pointer,
                                     .bytes = bytes}};
    if (member) {
        record.comm.comm = call->comm = member->comm;
        record.comm.parent = member->parent;
        record.comm.nranks = member->nranks;
        record.comm.rank = member->rank;
        record.comm.device = member->device;
        record.comm.gpu = member->gpu;
        record.comm.flags = member->flags;
        record.comm.ordinal = member->ordinal;
        record.comm.color = member->color;
        record.comm.key = member->key;
    }
    if (ended) {
        record.flags = RECORD_FLAG_GONE;
        record.comm.comm = ended->comm;
        record.comm.rank = ended->rank;
    }
    record.comm.flags |= flags;
    if (pointer && bytes)
        buffers_record(call->thread, pointer);
    emit_enter(call, &record, NULL);
}

void comm_enter(struct recorded_call *call, ncclComm_t comm, const void *pointer, size_t bytes)
{
    enter_with_flags(call, comm, pointer, bytes, 0);
}

void comm_window_enter(struct recorded_call *call, ncclComm_t comm, const void *pointer,
                       size_t bytes, int flags)
{
    enter_with_flags(call, comm, pointer, bytes,
                     flags & NCCL_WIN_COLL_SYMMETRIC ? RECORD_COMM_SYMMETRIC : 0);
}

/* In a group NCCL sets the handle at the group's end, where nobody looks for it. */
void comm_window_leave(struct recorded_call *call, ncclResult_t result, const ncclWindow_t *window)
{
    bool is_set = !call->thread->group_depth;
    emit_leave(call, result, is_set ? handle_of(result, (void *const *)window) : 0);
}

void comm_suspend_enter(struct recorded_call *call, ncclComm_t comm, int flags)
{
    enter_with_flags(call, comm, NULL, 0, flags & NCCL_SUSPEND_MEM ? RECORD_COMM_SUSPENDS : 0);
}

/* NCCL may give the handle out again as soon as it is destroyed, so it is forgotten before. */
void comm_destroy_enter(struct recorded_call *call, ncclComm_t comm)
{
    exceptions_record(call);
    comm_enter(call, comm, NULL, 0);
    struct local_member *member = comms_find(comm);
    if (!member)
        return;
    if (call->api != API_ncclCommAbort) /* a write could block behind what is stuck */
        progress_flush(call->thread, member);
    progress_release(member);
    comms_remove(member);
}

void comm_destroy_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm)
{
    if (result == ncclSuccess)
        comms_ended(comm);
    emit_leave(call, result, 0);
}

void comm_finalize_leave(struct recorded_call *call, ncclResult_t result, ncclComm_t comm)
{
    struct local_member *member = comms_find(comm);
    if (member && result == ncclSuccess)
        progress_flush(call->thread, member);
    if (member && result == ncclInProgress)
        atomic_store(&member->async, ncclInProgress);
    emit_leave(call, result, 0);
}

void comm_query_enter(struct recorded_call *call)
{
    struct record record = {0};
    emit_enter(call, &record, NULL);
}

void comm_plain_leave(struct recorded_call *call, ncclResult_t result, uint64_t handle)
{
    if (call->api == API_ncclGetUniqueId) {
        call->comm = result == ncclSuccess ? handle : 0;
        handle = 0;
    }
    emit_leave(call, result, handle);
}

/* Programs call this all the time; only a result that differs from the last is recorded. The
 * record's result is the communicator's state, its payload is that of a LEAVE without ENTER. */
void comm_async_error(struct recorded_call *call, ncclResult_t result, ncclComm_t comm,
                      const ncclResult_t *error)
{
    struct local_member *member = comms_find(comm);
    if (result != ncclSuccess || !error || !member)
        return;
    progress_poll();
    if (*error == ncclSuccess && !atomic_load_explicit(&member->announced, memory_order_relaxed))
        communicators_announce(call->thread, member);
    int32_t before = atomic_exchange(&member->async, (int32_t)*error);
    if (before == (int32_t)*error)
        return;
    if (*error == ncclSuccess)
        progress_flush(call->thread, member);
    struct record record = {.leave = {.comm = member->comm, .handle = (uintptr_t)comm}};
    emit_point(call, &record, (int)*error, NULL);
}
