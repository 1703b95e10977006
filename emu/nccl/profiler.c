/* profiler.c: loads the plugin and calls it for every event. See profiler.h.
 *
 * Events are made as version 5 has them and translated for older plugins, as NCCL does; what later
 * versions added to them is left out. */
#include "emu/nccl/profiler.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abi/nccl_profiler.h"
#include "emu/core.h"
#include "emu/core/stream.h"
#include "emu/nccl/operators.h"
#include "emu/nccl/errors.h"
#include "emu/nccl/registrations.h"

enum { VERSIONS = 7 };

static struct {
    pthread_mutex_t lock; /* guards what follows up to `mask` */
    bool tried;
    int communicators; /* NCCL lets go of the plugin with its last one */
    void *library;
    int version; /* of the plugin; 0: there is none */
    void *table;
    atomic_int mask; /* one for the process, as the last init left it */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ncclGroup's API event of this thread. */
static _Thread_local struct {
    void *event;
    int depth;
} group;

enum { NO_PATHS_VERSION = 22703 }; /* this release alone takes names, and no paths */

static void *open_plugin(void)
{
    const char *name = getenv("NCCL_PROFILER_PLUGIN");
    char path[4096];

    if (!name)
        return dlopen("libnccl-profiler.so", RTLD_NOW | RTLD_LOCAL);
    if (!strcasecmp(name, "none") ||
        (emulated_nccl_version() == NO_PATHS_VERSION && strchr(name, '/')))
        return NULL;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    snprintf(path, sizeof(path), "libnccl-profiler-%s.so", name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static int highest_version(void)
{
    const char *text = getenv("DDPCHECK_EMU_NCCL_PROFILER");
    int version = text ? atoi(text) : VERSIONS;

    return version >= 1 && version <= VERSIONS ? version : VERSIONS;
}

static void load_plugin(void)
{
    char symbol[32];

    plugin.tried = true;
    plugin.library = open_plugin();
    for (int version = highest_version(); plugin.library && version >= 1 && !plugin.table;
         version--) {
        snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
        plugin.table = dlsym(plugin.library, symbol);
        plugin.version = plugin.table ? version : 0;
    }
}

/* Calls a function of the plugin's table, whose place and type do not depend on the version. */
#define CALL(function, ...) (((struct nccl_profiler_v5 *)plugin.table)->function(__VA_ARGS__))

static void log_nothing(int level, unsigned long flags, const char *file, int line,
                        const char *format, ...)
{
    (void)level, (void)flags, (void)file, (void)line, (void)format;
}

static uint64_t segment_hash(const struct segment_id *id)
{
    return (uint64_t)id->creator * 0x9e3779b97f4a7c15u ^ id->high * 0xc2b2ae3d27d4eb4fu ^ id->low;
}

void profiler_attach(struct ncclComm *comm)
{
    void *context = NULL;
    int mask = 0, result = 0;

    comm->hash = segment_hash(&comm->id);
    pthread_mutex_lock(&plugin.lock);
    if (!plugin.tried)
        load_plugin();
    switch (plugin.version) {
    case 0:
        break;
    case 5:
    case 6:
    case 7:
        result =
            CALL(init, &context, comm->hash, &mask, NULL, 1, comm->ranks, comm->rank, log_nothing);
        break;
    case 4:
        result =
            ((struct nccl_profiler_v4 *)plugin.table)
                ->init(&context, &mask, NULL, comm->hash, 1, comm->ranks, comm->rank, log_nothing);
        break;
    default:
        result = ((struct nccl_profiler_v3 *)plugin.table)->init(&context, &mask);
        break;
    }
    if (plugin.version && !result)
        atomic_store(&plugin.mask, mask);
    comm->profiler = result ? NULL : context;
    plugin.communicators++;
    comm->counted = true;
    pthread_mutex_unlock(&plugin.lock);
}

void profiler_detach(struct ncclComm *comm)
{
    if (!comm->counted)
        return;
    if (comm->profiler)
        CALL(finalize, comm->profiler);
    comm->profiler = NULL;
    pthread_mutex_lock(&plugin.lock);
    if (!--plugin.communicators) {
        if (plugin.library)
            dlclose(plugin.library);
        plugin.tried = false;
        plugin.version = 0;
        plugin.library = plugin.table = NULL;
        atomic_store(&plugin.mask, 0);
    }
    pthread_mutex_unlock(&plugin.lock);
}

static const char *type_name(ncclDataType_t type)
{
    static const char *const names[] = {
        [ncclInt8] = "ncclInt8",
        [ncclUint8] = "ncclUint8",
        [ncclInt32] = "ncclInt32",
        [ncclUint32] = "ncclUint32",
        [ncclInt64] = "ncclInt64",
        [ncclUint64] = "ncclUint64",
        [ncclFloat16] = "ncclFloat16",
        [ncclFloat32] = "ncclFloat32",
        [ncclFloat64] = "ncclFloat64",
        [ncclBfloat16] = "ncclBfloat16",
        [ncclFloat8e4m3] = "ncclFloat8e4m3",
        [ncclFloat8e5m2] = "ncclFloat8e5m2",
    };

    return names[type];
}

static uint8_t type_number(const char *name)
{
    for (int type = 0; type < ncclNumTypes; type++)
        if (!strcmp(name, type_name((ncclDataType_t)type)))
            return (uint8_t)type;
    return 0;
}

static uint8_t function_number(const char *name)
{
    static const char *const names[] = {
        [PROFILE_BROADCAST] = "Broadcast",
        [PROFILE_REDUCE] = "Reduce",
        [PROFILE_ALL_GATHER] = "AllGather",
        [PROFILE_REDUCE_SCATTER] = "ReduceScatter",
        [PROFILE_ALL_REDUCE] = "AllReduce",
        [PROFILE_SEND_RECV] = "SendRecv",
        [PROFILE_SEND] = "Send",
        [PROFILE_RECV] = "Recv",
    };

    for (uint8_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (!strcmp(name, names[i]))
            return i;
    return 0;
}

/* What versions 2 and 3 have in common with the newest, by the same names. */
#define OLDER(version, older, event, comm)                                                 \
    struct profile_event_v##version older = {                                              \
        .type = (uint8_t)(event)->type, .parent = (event)->parent, .rank = (event)->rank}; \
    if ((event)->type == PROFILE_COLL) {                                                   \
        older.parent = (event)->coll.group;                                                \
        older.coll.comm_hash = (comm)->hash;                                               \
        older.coll.number = (event)->coll.number;                                          \
        older.coll.function = (event)->coll.function;                                      \
        older.coll.send = (event)->coll.send;                                              \
        older.coll.recv = (event)->coll.recv;                                              \
        older.coll.count = (event)->coll.count;                                            \
        older.coll.root = (event)->coll.root;                                              \
        older.coll.datatype = (event)->coll.datatype;                                      \
        older.coll.channels_max = (event)->coll.channels;                                  \
        older.coll.algorithm = (event)->coll.algorithm;                                    \
        older.coll.protocol = (event)->coll.protocol;                                      \
    } else if ((event)->type == PROFILE_P2P) {                                             \
        older.parent = (event)->p2p.group;                                                 \
        older.p2p = (struct profile_p2p_v2){.comm_hash = (comm)->hash,                     \
                                            .function = (event)->p2p.function,             \
                                            .buffer = (event)->p2p.buffer,                 \
                                            .datatype = (event)->p2p.datatype,             \
                                            .count = (event)->p2p.count,                   \
                                            .peer = (event)->p2p.peer};                    \
    }

static void start_event_v1(struct ncclComm *comm, void **handle,
                           const struct profile_event_v5 *event)
{
    struct profile_event_v1 older = {
        .type = (uint8_t)event->type, .parent = event->parent, .rank = event->rank};

    if (event->type == PROFILE_COLL) {
        older.parent = event->coll.group;
        older.coll.comm_hash = comm->hash;
        older.coll.number = event->coll.number;
        older.coll.function = function_number(event->coll.function);
        older.coll.send = event->coll.send;
        older.coll.recv = event->coll.recv;
        older.coll.count = event->coll.count;
        older.coll.root = event->coll.root;
        older.coll.datatype = type_number(event->coll.datatype);
        older.coll.channels_max = event->coll.channels;
    } else if (event->type == PROFILE_P2P) {
        older.parent = event->p2p.group;
        older.p2p.comm_hash = comm->hash;
        older.p2p.function = function_number(event->p2p.function);
        older.p2p.buffer = event->p2p.buffer;
        older.p2p.datatype = type_number(event->p2p.datatype);
        older.p2p.count = event->p2p.count;
        older.p2p.peer = event->p2p.peer;
    }
    ((struct nccl_profiler_v1 *)plugin.table)->start(comm->profiler, handle, &older);
}

static void start_event_v4(struct ncclComm *comm, void **handle,
                           const struct profile_event_v5 *event)
{
    struct profile_event_v4 older = {
        .type = (uint8_t)event->type, .parent = event->parent, .rank = event->rank};

    if (event->type == PROFILE_COLL) {
        older.parent = event->coll.group;
        older.coll = event->coll;
        older.coll.group = (void *)~(uintptr_t)0; /* no part of this version's struct */
    } else if (event->type == PROFILE_P2P) {
        older.parent = event->p2p.group;
        older.p2p = event->p2p;
        older.p2p.group = (void *)~(uintptr_t)0;
    } else if (event->type == PROFILE_KERNEL_CH) {
        older.kernel_ch = event->kernel_ch;
    }
    ((struct nccl_profiler_v4 *)plugin.table)->start(comm->profiler, handle, &older);
}

/* Starts an event if the plugin wants its type and its version has it. */
static void *start_profile_event(struct ncclComm *comm, struct profile_event_v5 event)
{
    void *handle = NULL;

    if (!comm->profiler || !(atomic_load(&plugin.mask) & (int)event.type) ||
        (plugin.version < 5 && event.type >= PROFILE_GROUP_API) ||
        (plugin.version < 3 && event.type == PROFILE_KERNEL_CH))
        return NULL;
    if (plugin.version >= 5) {
        CALL(start, comm->profiler, &handle, &event);
    } else if (plugin.version == 4) {
        start_event_v4(comm, &handle, &event);
    } else if (plugin.version == 3) {
        OLDER(3, older, &event, comm)
        if (event.type == PROFILE_KERNEL_CH)
            older.kernel_ch = event.kernel_ch;
        ((struct nccl_profiler_v3 *)plugin.table)->start(comm->profiler, &handle, &older);
    } else if (plugin.version == 2) {
        OLDER(2, older, &event, comm)
        ((struct nccl_profiler_v2 *)plugin.table)->start(comm->profiler, &handle, &older);
    } else {
        start_event_v1(comm, &handle, &event);
    }
    return handle;
}

static void stop_profile_event(void *handle)
{
    if (handle && plugin.table)
        CALL(stop, handle);
}

static void record_profile_state(void *handle, int state, int version)
{
    union profile_state_arguments arguments = {.timer = 0};

    if (handle && plugin.version >= version)
        CALL(record, handle, state, &arguments);
}

/* AlltoAll, Gather and Scatter have no events of their own: they become sends and receives. */
void *profiler_call(struct ncclComm *comm, const char *name, const struct task *task, int depth)
{
    bool captured = comm->profiler && emu_stream_is_capturing(emu_stream_find(task->stream));
    void *call;

    if (!comm->profiler || comm->ranks == 1)
        return NULL;
    if (!group.depth) {
        group.event = start_profile_event(
            comm,
            (struct profile_event_v5){.type = PROFILE_GROUP_API, .group_api = {captured, depth}});
        group.depth = depth;
        record_profile_state(group.event, PROFILE_STATE_GROUP_START_OVER, 5);
    }
    if (task->kind < TASK_COLLECTIVES && strcmp(name, "AlltoAll") && strcmp(name, "Gather") &&
        strcmp(name, "Scatter"))
        call = start_profile_event(
            comm, (struct profile_event_v5){
                      .type = PROFILE_COLL_API,
                      .parent = group.event,
                      .coll_api = {!strcmp(name, "Bcast") ? "Broadcast" : name, task->count,
                                   type_name(task->type), task->root, task->stream, captured}});
    else
        call = start_profile_event(
            comm, (struct profile_event_v5){.type = PROFILE_P2P_API,
                                            .parent = group.event,
                                            .p2p_api = {name, task->count, type_name(task->type),
                                                        task->stream, captured}});
    stop_profile_event(call);
    return call;
}

void profiler_group_ends(void)
{
    record_profile_state(group.event, PROFILE_STATE_GROUP_END_BEGINS, 5);
}

void profiler_group_over(void)
{
    void *event = group.event;

    group.event = NULL;
    group.depth = 0;
    stop_profile_event(event);
}

static const char *task_name(const struct task *task)
{
    static const char *const names[] = {
        [TASK_ALL_REDUCE] = "AllReduce",
        [TASK_BROADCAST] = "Broadcast",
        [TASK_REDUCE] = "Reduce",
        [TASK_ALL_GATHER] = "AllGather",
        [TASK_REDUCE_SCATTER] = "ReduceScatter",
        [TASK_SEND] = "Send",
        [TASK_RECV] = "Recv",
    };

    return names[task->kind];
}

/* NCCL lets copy engines gather into a window if the communicator's policy is to use no SM. */
static bool uses_copy_engine(struct ncclComm *comm, const struct task *task)
{
    return task->kind == TASK_ALL_GATHER && comm->config.CTAPolicy & NCCL_CTA_POLICY_ZERO &&
           registrations_cover(comm, task->recv, 1);
}

/* Older plugins learn nothing of it. */
static void report_copy_engine(struct ncclComm *comm, const struct task *task)
{
    const struct profile_event_v5 event = {
        .type = PROFILE_CE_COLL, .parent = task->call, .rank = comm->rank};

    if (plugin.version >= 6)
        stop_profile_event(start_profile_event(comm, event));
}

static void *start_task(struct ncclComm *comm, const struct task *task, void *plan)
{
    bool bytes = task->kind == TASK_ALL_GATHER ||
                 task->kind == TASK_BROADCAST; /* NCCL counts these in bytes */
    const char *type = type_name(bytes ? ncclInt8 : task->type);

    if (task->kind >= TASK_COLLECTIVES)
        return start_profile_event(
            comm, (struct profile_event_v5){
                      .type = PROFILE_P2P,
                      .parent = task->call,
                      .rank = comm->rank,
                      .p2p = {task_name(task),
                              task->kind == TASK_SEND ? (void *)(uintptr_t)task->send : task->recv,
                              type, task->count, task->root, EMU_CHANNELS, plan}});
    return start_profile_event(
        comm, (struct profile_event_v5){
                  .type = PROFILE_COLL,
                  .parent = task->call,
                  .rank = comm->rank,
                  .coll = {.number = comm->numbers[task->kind]++,
                           .function = task_name(task),
                           .send = task->send,
                           .recv = task->recv,
                           .count = bytes ? datatype_total(task->type, task->count) : task->count,
                           .root = task->root,
                           .datatype = type,
                           .channels = EMU_CHANNELS,
                           .warps = 8,
                           .algorithm = "RING",
                           .protocol = "SIMPLE",
                           .group = plan}});
}

void profiler_launch(struct ncclComm *comm, struct task *tasks, size_t count)
{
    void *plan;

    if (!comm->profiler)
        return;
    plan = start_profile_event(comm, (struct profile_event_v5){.type = PROFILE_GROUP});
    for (size_t i = 0; i < count; i++)
        if (uses_copy_engine(comm, &tasks[i])) {
            tasks[i].event = NULL;
            report_copy_engine(comm, &tasks[i]);
        } else {
            tasks[i].event = start_task(comm, &tasks[i], plan);
        }
    for (size_t i = 0; i < count; i++)
        stop_profile_event(tasks[i].event);
    stop_profile_event(plan);
}

void profiler_kernel_begins(struct ncclComm *comm, struct task *tasks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (uint8_t channel = 0; channel < EMU_CHANNELS; channel++)
            tasks[i].channels[channel] =
                tasks[i].event ? start_profile_event(
                                     comm, (struct profile_event_v5){.type = PROFILE_KERNEL_CH,
                                                                     .parent = tasks[i].event,
                                                                     .rank = comm->rank,
                                                                     .kernel_ch = {channel, 0}})
                               : NULL;
}

void profiler_kernel_ends(struct ncclComm *comm, struct task *tasks, size_t count)
{
    (void)comm;
    for (size_t i = 0; i < count; i++)
        for (uint8_t channel = 0; channel < EMU_CHANNELS; channel++) {
            record_profile_state(tasks[i].channels[channel], PROFILE_STATE_KERNEL_CH_STOP, 4);
            stop_profile_event(tasks[i].channels[channel]);
            tasks[i].channels[channel] = NULL;
        }
}
