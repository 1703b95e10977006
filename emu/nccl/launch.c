/* launch.c: runs the tasks that a group gave one communicator as one piece of work on a stream. */
#include "emu/nccl/launch.h"

#include <stdlib.h>
#include <string.h>

#include "emu/core.h"
#include "emu/core/activity.h"
#include "emu/core/device.h"
#include "emu/core/model.h"
#include "emu/core/process.h"
#include "emu/core/stream.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/profiler.h"

struct task_launch {
    struct task_launch *next; /* of the communicator's eager ones */
    struct ncclComm *comm;    /* a reference */
    bool eager;               /* runs once; others belong to a graph */
    uint64_t stream;          /* that it runs on, and the number of the call, 0 of a graph's */
    uint32_t correlation;
    size_t collectives, count; /* the collectives come first */
    struct task tasks[];
};

static void add_eager(struct task_launch *launch)
{
    struct ncclComm *comm = launch->comm;

    pthread_mutex_lock(&comm->lock);
    if (comm->first)
        comm->last->next = launch;
    else
        comm->first = launch;
    comm->last = launch;
    pthread_mutex_unlock(&comm->lock);
}

/* With comm->lock held. It need not be there any more. */
static void remove_eager(struct task_launch *launch)
{
    struct ncclComm *comm = launch->comm;
    struct task_launch *before = NULL, *at = comm->first;

    while (at && at != launch) {
        before = at;
        at = at->next;
    }
    if (!at)
        return;
    if (before)
        before->next = launch->next;
    else
        comm->first = launch->next;
    if (comm->last == launch)
        comm->last = before;
}

/* Waits for its turn. False if the communicator was stopped. */
static bool begin_task_launch(struct task_launch *launch)
{
    struct ncclComm *comm = launch->comm;
    bool stopped;

    pthread_mutex_lock(&comm->lock);
    while (!(stopped = atomic_load(&comm->stop)) &&
           (comm->running || (launch->eager && comm->first != launch)))
        pthread_cond_wait(&comm->changed, &comm->lock);
    if (!stopped)
        comm->running = true;
    pthread_mutex_unlock(&comm->lock);
    return !stopped;
}

static void end_task_launch(struct task_launch *launch)
{
    struct ncclComm *comm = launch->comm;

    pthread_mutex_lock(&comm->lock);
    comm->running = false;
    if (launch->eager)
        remove_eager(launch);
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
}

/* Named as NCCL's kernels are: they reduce, or else move bytes. */
static const char *nccl_kernel_name(const struct task_launch *launch)
{
    static const char *const names[] = {
        [TASK_ALL_REDUCE] =
            "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        [TASK_BROADCAST] = "_Z31ncclDevKernel_Broadcast_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        [TASK_REDUCE] =
            "_Z37ncclDevKernel_Reduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        [TASK_ALL_GATHER] =
            "_Z31ncclDevKernel_AllGather_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        [TASK_REDUCE_SCATTER] =
            "_Z44ncclDevKernel_ReduceScatter_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
        [TASK_SEND] = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
        [TASK_RECV] = "_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE",
    };

    return names[launch->tasks[0].kind];
}

static void record_task_launch(const struct task_launch *launch, uint64_t begin_ns)
{
    struct emu_activity activity = {.kind = EMU_ACTIVITY_KERNEL,
                                    .name = nccl_kernel_name(launch),
                                    .device = launch->comm->device,
                                    .stream = launch->stream,
                                    .correlation = launch->correlation};

    emu_activity_end(&activity, begin_ns);
}

/* NCCL notifies its plugin of a graph's operations in a host function of the graph (enqueue.cc,
 * hostStreamPlanCallback), where the plugin may not call CUDA. */
static void report_replay(struct task_launch *launch)
{
    emu_process_callback(true);
    profiler_launch(launch->comm, launch->tasks, launch->count);
    emu_process_callback(false);
}

static int run_task_launch(void *arg)
{
    struct task_launch *launch = arg;
    size_t messages = launch->count - launch->collectives;
    uint64_t activity_ns;
    int error = 0;

    if (!begin_task_launch(launch))
        return 0;
    if (atomic_load(&launch->comm->suspended)) { /* its memory is gone */
        end_task_launch(launch);
        return cudaErrorIllegalAddress;
    }
    activity_ns = emu_activity_begin();
    emu_model_operation_begins(emu_device_get(launch->comm->device));
    if (!launch->eager)
        report_replay(launch);
    for (size_t i = 0; i < launch->collectives && !error && !atomic_load(&launch->comm->stop);
         i++) {
        profiler_kernel_begins(launch->comm, &launch->tasks[i], 1);
        error = collective_run(launch->comm, &launch->tasks[i]);
        if (!error && !atomic_load(&launch->comm->stop))
            profiler_kernel_ends(launch->comm, &launch->tasks[i], 1);
    }
    if (!error && messages && !atomic_load(&launch->comm->stop)) {
        profiler_kernel_begins(launch->comm, launch->tasks + launch->collectives, messages);
        error = transfers_run(launch->comm, launch->tasks + launch->collectives, messages);
        if (!error && !atomic_load(&launch->comm->stop))
            profiler_kernel_ends(launch->comm, launch->tasks + launch->collectives, messages);
    }
    if (!error)
        record_task_launch(launch, activity_ns);
    end_task_launch(launch);
    return error;
}

/* After the run, or instead of it on a device that failed, or when the graph is destroyed. */
static void release_task_launch(void *arg)
{
    struct task_launch *launch = arg;
    struct ncclComm *comm = launch->comm;

    pthread_mutex_lock(&comm->lock);
    if (launch->eager)
        remove_eager(launch);
    else
        comm->recorded--;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
    communicator_put(comm);
    free(launch);
}

static struct task_launch *launch_new(struct ncclComm *comm, const struct task *tasks, size_t count,
                                      bool eager)
{
    struct task_launch *launch = calloc(1, sizeof(*launch) + count * sizeof(*tasks));

    if (!launch)
        return NULL;
    communicator_hold(comm);
    launch->comm = comm;
    launch->eager = eager;
    for (int messages = 0; messages < 2; messages++)
        for (size_t i = 0; i < count; i++)
            if ((tasks[i].kind >= TASK_COLLECTIVES) == messages) {
                launch->tasks[launch->count++] = tasks[i];
                launch->collectives += !messages;
            }
    return launch;
}

static const char *launch_name(const struct task_launch *launch)
{
    static const char *const names[] = {
        [TASK_ALL_REDUCE] = "ncclAllReduce",
        [TASK_BROADCAST] = "ncclBroadcast",
        [TASK_REDUCE] = "ncclReduce",
        [TASK_ALL_GATHER] = "ncclAllGather",
        [TASK_REDUCE_SCATTER] = "ncclReduceScatter",
        [TASK_SEND] = "ncclSend",
        [TASK_RECV] = "ncclRecv",
    };

    return launch->count == 1 ? names[launch->tasks[0].kind] : "ncclGroup";
}

/* Returns 0 or a cudaError_t. */
static int push_on(struct ncclComm *comm, struct emu_stream *stream, const struct task *tasks,
                   size_t count)
{
    bool eager = !emu_stream_is_capturing(stream);
    struct task_launch *launch = launch_new(comm, tasks, count, eager);
    int error;

    if (!launch)
        return cudaErrorMemoryAllocation;
    launch->stream = stream->id;
    if (eager) {
        launch->correlation = emu_activity_launch();
        profiler_launch(comm, launch->tasks, launch->count);
        add_eager(launch);
    } else {
        pthread_mutex_lock(&comm->lock);
        comm->recorded++;
        pthread_mutex_unlock(&comm->lock);
    }
    error =
        emu_stream_push(stream, launch_name(launch), run_task_launch, launch, release_task_launch);
    if (error)
        release_task_launch(launch);
    return error;
}

/* `waiting` goes on after all that is on `stream` now. */
static int order_after(struct emu_stream *waiting, struct emu_stream *stream)
{
    return waiting == stream
               ? 0
               : emu_stream_append_wait(waiting, stream, atomic_load(&stream->pushed));
}

/* One launch for several streams. */
static int push_joined(struct ncclComm *comm, struct emu_stream *const *streams,
                       const struct task *tasks, size_t count)
{
    int error = 0;

    for (size_t i = 1; i < count && !error; i++)
        error = order_after(streams[0], streams[i]);
    if (!error)
        error = push_on(comm, streams[0], tasks, count);
    for (size_t i = 1; i < count && !error; i++)
        error = order_after(streams[i], streams[0]);
    return error;
}

/* A graph has no such join; each captured stream gets a launch with its own tasks. */
static int push_apart(struct ncclComm *comm, struct emu_stream **streams, const struct task *tasks,
                      size_t count)
{
    struct task *own = malloc(count * sizeof(*own));
    int error = own ? 0 : cudaErrorMemoryAllocation;

    for (size_t i = 0; i < count && !error; i++) {
        struct emu_stream *stream = streams[i];
        size_t found = 0;

        for (size_t k = i; stream && k < count; k++)
            if (streams[k] == stream) {
                own[found++] = tasks[k];
                streams[k] = NULL;
            }
        if (found)
            error = push_on(comm, stream, own, found);
    }
    free(own);
    return error;
}

static int push_all(struct ncclComm *comm, struct emu_stream **streams, const struct task *tasks,
                    size_t count)
{
    bool capturing = false;

    for (size_t i = 0; i < count; i++) {
        streams[i] = emu_stream_find(tasks[i].stream);
        if (!streams[i] || emu_stream_device(streams[i]) != comm->device)
            return cudaErrorInvalidResourceHandle;
        capturing |= emu_stream_is_capturing(streams[i]);
    }
    return capturing ? push_apart(comm, streams, tasks, count)
                     : push_joined(comm, streams, tasks, count);
}

ncclResult_t launch_push(struct ncclComm *comm, const struct task *tasks, size_t count)
{
    struct emu_stream **streams = calloc(count, sizeof(struct emu_stream *));
    int device = emu_device_current(), error;

    if (!streams)
        return fail(ncclSystemError, "Out of memory for a launch of %zu calls", count);
    error = emu_device_set(comm->device);
    if (!error)
        error = emu_device_error(comm->device);
    emu_model_host_call(emu_device_get(comm->device));
    pthread_mutex_lock(&comm->issue);
    if (!error)
        error = push_all(comm, streams, tasks, count);
    pthread_mutex_unlock(&comm->issue);
    emu_device_set(device);
    free(streams);
    if (error)
        return fail(ncclUnhandledCudaError, "Cuda failure %d while launching on device %d%s", error,
                    comm->device,
                    error == cudaErrorInvalidResourceHandle
                        ? ": the stream is not one of this device"
                        : "");
    return ncclSuccess;
}
