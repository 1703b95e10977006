/* one_sided.c: writes into other members' windows, and signals.
 *
 * Device memory is ordinary memory of its process, so a put writes into another process as a
 * debugger would (process_vm_writev): the target takes no part. Signals are counters in the shared
 * segment, which only grow; a wait claims the next ones. */
#include "emu/nccl/one_sided.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi/nccl_later.h"
#include "emu/core.h"
#include "emu/core/memory.h"
#include "emu/core/model.h"
#include "emu/core/stream.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/group.h"
#include "emu/nccl/operators.h"
#include "emu/nccl/registrations.h"

struct awaited_signals {
    int peer, signal;
    uint64_t count;
};

struct one_sided {
    struct ncclComm *comm; /* a reference, from its push on */
    const char *call;
    cudaStream_t stream;
    int peer, signal; /* of a put or a signal */
    const void *local;
    size_t bytes; /* 0: only the signal */
    uint64_t window, offset;
    size_t waits; /* how many of: */
    struct awaited_signals awaited[];
};

static int write_to_peer(pid_t process, uintptr_t to, const void *from, size_t bytes)
{
    while (bytes) {
        struct iovec local = {.iov_base = (void *)(uintptr_t)from, .iov_len = bytes},
                     remote = {.iov_base = (void *)to, .iov_len = bytes};
        ssize_t written;

        if (process == getpid()) {
            memcpy((void *)to, from, bytes);
            return 0;
        }
        written = process_vm_writev(process, &local, 1, &remote, 1, 0);
        if (written < 0 && (errno == EPERM || errno == ENOSYS))
            emu_unsupported("ncclPutSignal", "this machine allows no writes into other processes");
        if (written <= 0)
            return cudaErrorIllegalAddress;
        from = (const char *)from + written;
        to += (uintptr_t)written;
        bytes -= (size_t)written;
    }
    return 0;
}

static int run_put(const struct one_sided *put)
{
    const struct segment_member *members = put->comm->segment.members,
                                *target = &members[put->peer];
    struct window_place place = target->windows[put->window % WINDOWS];
    struct emu_range *held = NULL;
    int error;

    if (put->offset > place.bytes || put->bytes > place.bytes - put->offset)
        return cudaErrorIllegalAddress;
    error = emu_memory_hold(put->comm->device, put->local, put->bytes, false, &held);
    if (error)
        return error;
    emu_model_wait(
        emu_model_transfer_ns(members[put->comm->rank].device, target->device, put->bytes), NULL,
        NULL);
    error = write_to_peer(target->process, place.base + put->offset, put->local, put->bytes);
    emu_memory_release(held);
    return error;
}

static void send_signal(const struct one_sided *call)
{
    struct segment *segment = &call->comm->segment;
    struct segment_channel *channel = segment_channel(segment, call->comm->rank, call->peer);

    atomic_fetch_add(&channel->signals[call->signal], 1);
    bell_ring(&segment->members[call->peer].bell);
}

/* Claims the next signals, then waits until they are there. */
static void await_signals(struct ncclComm *comm, const struct awaited_signals *awaited)
{
    struct bell *bell = &comm->segment.members[comm->rank].bell;
    struct guard guard = communicator_device_guard(comm);
    struct segment_channel *channel = segment_channel(&comm->segment, awaited->peer, comm->rank);
    uint64_t *claimed = &comm->received_signals[awaited->peer * SIGNALS + awaited->signal], until;

    pthread_mutex_lock(&comm->lock);
    until = *claimed += awaited->count;
    pthread_mutex_unlock(&comm->lock);
    for (;;) {
        uint32_t seen = bell_read(bell);

        if (atomic_load(&channel->signals[awaited->signal]) >= until || guard_stopped(&guard))
            return;
        bell_wait(bell, seen);
    }
}

static int run_one_sided(void *arg)
{
    struct one_sided *call = arg;
    int error = 0;

    if (atomic_load(&call->comm->stop))
        return 0;
    if (atomic_load(&call->comm->suspended))
        return cudaErrorIllegalAddress;
    for (size_t i = 0; i < call->waits; i++)
        await_signals(call->comm, &call->awaited[i]);
    if (call->bytes)
        error = run_put(call);
    if (!error && !call->waits)
        send_signal(call);
    return error;
}

/* After the run, or instead of it. */
static void release_one_sided(void *arg)
{
    struct one_sided *call = arg;
    struct ncclComm *comm = call->comm;

    pthread_mutex_lock(&comm->lock);
    comm->one_sided--;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
    communicator_put(comm);
    free(call);
}

size_t one_sided_sort(struct task *tasks, size_t count)
{
    size_t others = count;

    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0, left = others; left; left--) {
            struct task task = tasks[i];
            bool moves = task.kind == TASK_ONE_SIDED && (task.one_sided->waits > 0) == kind;

            if (!moves) {
                i++;
                continue;
            }
            memmove(&tasks[i], &tasks[i + 1], (count - i - 1) * sizeof(*tasks));
            tasks[count - 1] = task;
            others--;
        }
    return others;
}

static int push_one_sided(struct ncclComm *comm, struct one_sided *call)
{
    struct emu_stream *stream = emu_stream_find(call->stream);
    int error = emu_device_error(comm->device);

    if (!stream || emu_stream_device(stream) != comm->device)
        error = cudaErrorInvalidResourceHandle;
    communicator_hold(comm);
    call->comm = comm;
    pthread_mutex_lock(&comm->lock);
    comm->one_sided++;
    pthread_mutex_unlock(&comm->lock);
    if (!error)
        error = emu_stream_push(stream, call->call, run_one_sided, call, release_one_sided);
    if (error)
        release_one_sided(call);
    return error;
}

ncclResult_t one_sided_push(struct ncclComm *comm, const struct task *tasks, size_t count)
{
    int error = 0, device = emu_device_current();

    emu_device_set(comm->device);
    for (size_t i = 0; i < count; i++) {
        if (error)
            free(tasks[i].one_sided);
        else
            error = push_one_sided(comm, tasks[i].one_sided);
    }
    emu_device_set(device);
    return error ? fail(ncclUnhandledCudaError, "Cuda failure %d while launching on device %d",
                        error, comm->device)
                 : ncclSuccess;
}

/* --- the calls --- */

static ncclResult_t check_signal(const struct ncclComm *comm, const char *call, int peer, int index,
                                 int context)
{
    if (peer < 0 || peer >= comm->ranks)
        return fail(ncclInvalidArgument, "%s : invalid peer %d (0 to %d)", call, peer,
                    comm->ranks - 1);
    if (index < 0 || index >= SIGNAL_KINDS || context < 0 || context >= SIGNAL_KINDS)
        return fail(ncclInvalidArgument, "%s : invalid sigIdx %d or ctx %d (0 to %d)", call, index,
                    context, SIGNAL_KINDS - 1);
    return ncclSuccess;
}

static ncclResult_t add_one_sided(struct ncclComm *comm, struct one_sided *call)
{
    struct task task = {.kind = TASK_ONE_SIDED, .stream = call->stream, .one_sided = call};
    ncclResult_t result = group_add_task(comm, &task);

    if (result)
        free(call);
    return result;
}

/* A put, or a signal alone (without bytes). */
static ncclResult_t queue_signal(struct ncclComm *comm, const struct one_sided *what, int index,
                                 int context, unsigned flags)
{
    struct one_sided *call;
    ncclResult_t result = communicator_ready(comm);

    if (!result)
        result = check_signal(comm, what->call, what->peer, index, context);
    if (!result && flags)
        result = fail(ncclInvalidArgument, "%s : flags %u must be 0", what->call, flags);
    if (!result && what->bytes && !registrations_cover(comm, what->local, what->bytes))
        result = fail(ncclInvalidArgument, "%s : the local buffer is in no window", what->call);
    if (result)
        return result;
    call = malloc(sizeof(*call));
    if (!call)
        return fail(ncclSystemError, "%s : out of memory", what->call);
    *call = *what;
    call->signal = context * SIGNAL_KINDS + index;
    return add_one_sided(comm, call);
}

static ncclResult_t end_one_sided(struct ncclComm *comm, const char *call, ncclResult_t result)
{
    if (!comm)
        result =
            fail(ncclInvalidArgument, "%s : comm argument is NULL or not a communicator", call);
    else
        communicator_put(comm);
    return group_leave(result);
}

PUBLIC(ncclPutSignal);
ncclResult_t ncclPutSignal(const void *local, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t window, size_t offset, int index, int context,
                           unsigned int flags, ncclComm_t handle, cudaStream_t stream)
{
    struct ncclComm *comm = communicator_get(handle);
    struct one_sided put = {.call = "ncclPutSignal",
                            .stream = stream,
                            .peer = peer,
                            .local = local,
                            .bytes = datatype_total(type, count),
                            .offset = offset};
    ncclResult_t result = ncclSuccess;

    group_enter();
    if (comm && !registrations_window(comm, window, &put.window))
        result = fail(ncclInvalidArgument, "ncclPutSignal : %p is no window of the communicator",
                      (void *)window);
    else if (comm)
        result = queue_signal(comm, &put, index, context, flags);
    return end_one_sided(comm, "ncclPutSignal", result);
}

PUBLIC(ncclSignal);
ncclResult_t ncclSignal(int peer, int index, int context, unsigned int flags, ncclComm_t handle,
                        cudaStream_t stream)
{
    struct ncclComm *comm = communicator_get(handle);
    const struct one_sided signal = {.call = "ncclSignal", .stream = stream, .peer = peer};

    group_enter();
    return end_one_sided(comm, "ncclSignal",
                         comm ? queue_signal(comm, &signal, index, context, flags) : ncclSuccess);
}

static ncclResult_t queue_wait(struct ncclComm *comm, int count, const ncclWaitSignalDesc_t *descs,
                               cudaStream_t stream)
{
    struct one_sided *call;
    ncclResult_t result = communicator_ready(comm);

    if (!result && (count <= 0 || !descs))
        result = fail(ncclInvalidArgument, "ncclWaitSignal : no signals to wait for");
    for (int i = 0; i < count && !result; i++) {
        result = check_signal(comm, "ncclWaitSignal", descs[i].peer, descs[i].sigIdx, descs[i].ctx);
        if (!result && descs[i].opCnt <= 0)
            result = fail(ncclInvalidArgument, "ncclWaitSignal : invalid opCnt %d", descs[i].opCnt);
    }
    if (result)
        return result;
    call = calloc(1, sizeof(*call) + (size_t)count * sizeof(*call->awaited));
    if (!call)
        return fail(ncclSystemError, "ncclWaitSignal : out of memory");
    call->call = "ncclWaitSignal";
    call->stream = stream;
    call->waits = (size_t)count;
    for (int i = 0; i < count; i++)
        call->awaited[i] =
            (struct awaited_signals){.peer = descs[i].peer,
                                     .signal = descs[i].ctx * SIGNAL_KINDS + descs[i].sigIdx,
                                     .count = (uint64_t)descs[i].opCnt};
    return add_one_sided(comm, call);
}

PUBLIC(ncclWaitSignal);
ncclResult_t ncclWaitSignal(int count, ncclWaitSignalDesc_t *descs, ncclComm_t handle,
                            cudaStream_t stream)
{
    struct ncclComm *comm = communicator_get(handle);

    group_enter();
    return end_one_sided(comm, "ncclWaitSignal",
                         comm ? queue_wait(comm, count, descs, stream) : ncclSuccess);
}
