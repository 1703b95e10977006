/* profiler_versions.c: translates the versions of NCCL's profiler plugin interface into calls
 * of profiler.h. */
#include <string.h>

#include "interpose/plugin/profiler.h"
#include "interpose/calls/recording.h"
#include "interpose/shim/shim.h"
#include "lib/trace/kinds.h"

/* ncclFuncToString and ncclDatatypeToString; what is not here (SendRecv, one-sided calls) is not
 * recorded. */
static uint16_t function_api(const char *function)
{
    return function ? kind_of_nccl(function, strlen(function)) : API_NONE;
}

static uint16_t api_of_number(uint8_t function)
{
    static const uint16_t apis[] = {
        [PROFILE_BROADCAST] = API_ncclBroadcast,
        [PROFILE_REDUCE] = API_ncclReduce,
        [PROFILE_ALL_GATHER] = API_ncclAllGather,
        [PROFILE_REDUCE_SCATTER] = API_ncclReduceScatter,
        [PROFILE_ALL_REDUCE] = API_ncclAllReduce,
        [PROFILE_SEND] = API_ncclSend,
        [PROFILE_RECV] = API_ncclRecv,
    };
    return function < sizeof apis / sizeof *apis ? apis[function] : API_NONE;
}

/* Older libraries have no name for ncclUint8 and call it alone "Unknown". */
static uint8_t profile_datatype(const char *name)
{
    static const char *const names[TYPE_COUNT] = {
#define DATATYPE(number, name, bytes, nccl, torch) [TYPE_##number] = nccl,
#include "lib/trace/datatypes.def"
#undef DATATYPE
    };
    for (uint8_t type = 0; name && type < TYPE_COUNT; type++)
        if (!strcmp(name, names[type]))
            return type;
    return TYPE_UINT8;
}

/* NCCL gives 0 for the root of calls that have none. */
static int32_t profile_root(uint16_t api, int root)
{
    return kind_has(api, KIND_ROOTED | KIND_TO_PEER) ? root : -1;
}

static const void *buffer_if(bool used, const void *buffer)
{
    return used ? buffer : NULL;
}

#define COLL(event, api_, type, hash, channels_)                                             \
    (struct profiler_task)                                                                   \
    {                                                                                        \
        .api = (api_), .datatype = (type), .channels = (channels_), .rank = (event)->rank,   \
        .root = profile_root((api_), (event)->coll.root), .comm_hash = (hash),               \
        .count = (event)->coll.count, .send = (event)->coll.send, .recv = (event)->coll.recv \
    }
#define P2P(event, api_, type, hash, channels_)                                            \
    (struct profiler_task)                                                                 \
    {                                                                                      \
        .api = (api_), .datatype = (type), .channels = (channels_), .rank = (event)->rank, \
        .root = (event)->p2p.peer, .comm_hash = (hash), .count = (event)->p2p.count,       \
        .send = buffer_if((api_) == API_ncclSend, (event)->p2p.buffer),                    \
        .recv = buffer_if((api_) == API_ncclRecv, (event)->p2p.buffer)                     \
    }

static ncclResult_t start_profile_v1(void *context, void **handle, struct profile_event_v1 *event)
{
    struct profiler_task task;
    *handle = NULL;
    switch (event->type) {
    case PROFILE_GROUP:
        *handle = profiler_plan();
        break;
    case PROFILE_COLL:
        task = COLL(event, api_of_number(event->coll.function), event->coll.datatype,
                    event->coll.comm_hash, 0);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    case PROFILE_P2P:
        task = P2P(event, api_of_number(event->p2p.function), event->p2p.datatype,
                   event->p2p.comm_hash, 0);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    default:
        break;
    }
    return ncclSuccess;
}

static ncclResult_t start_profile_v2(void *context, void **handle, struct profile_event_v2 *event)
{
    struct profiler_task task;
    *handle = NULL;
    switch (event->type) {
    case PROFILE_GROUP:
        *handle = profiler_plan();
        break;
    case PROFILE_COLL:
        task = COLL(event, function_api(event->coll.function),
                    profile_datatype(event->coll.datatype), event->coll.comm_hash, 0);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    case PROFILE_P2P:
        task = P2P(event, function_api(event->p2p.function), profile_datatype(event->p2p.datatype),
                   event->p2p.comm_hash, 0);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    default:
        break;
    }
    return ncclSuccess;
}

/* v3's number of channels is only a limit, so its first channel that is done counts. */
static ncclResult_t start_profile_v3(void *context, void **handle, struct profile_event_v3 *event)
{
    struct profiler_task task;
    *handle = NULL;
    switch (event->type) {
    case PROFILE_GROUP:
        *handle = profiler_plan();
        break;
    case PROFILE_COLL:
        task = COLL(event, function_api(event->coll.function),
                    profile_datatype(event->coll.datatype), event->coll.comm_hash, 0);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    case PROFILE_P2P:
        task = P2P(event, function_api(event->p2p.function), profile_datatype(event->p2p.datatype),
                   event->p2p.comm_hash, 0);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    case PROFILE_KERNEL_CH:
        *handle = profiler_channel(event->parent);
        break;
    default:
        break;
    }
    return ncclSuccess;
}

static ncclResult_t start_profile_v4(void *context, void **handle, struct profile_event_v4 *event)
{
    struct profiler_task task;
    *handle = NULL;
    switch (event->type) {
    case PROFILE_GROUP:
        *handle = profiler_plan();
        break;
    case PROFILE_COLL:
        task = COLL(event, function_api(event->coll.function),
                    profile_datatype(event->coll.datatype), 0, event->coll.channels);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    case PROFILE_P2P:
        task = P2P(event, function_api(event->p2p.function), profile_datatype(event->p2p.datatype),
                   0, 0);
        *handle = profiler_task(PROFILER_PLACE, context, NULL, &task);
        break;
    case PROFILE_KERNEL_CH:
        *handle = profiler_channel(event->parent);
        break;
    default:
        break;
    }
    return ncclSuccess;
}

/* A P2P_API event names no peer: sends and receives are recorded when they are launched, on the
 * stream that it named. */
static ncclResult_t start_profile_v5(void *context, void **handle, struct profile_event_v5 *event)
{
    struct profiler_task task;
    *handle = NULL;
    switch (event->type) {
    case PROFILE_GROUP_API:
        *handle = profiler_group_api(event->group_api.depth);
        break;
    case PROFILE_COLL_API:
        task = (struct profiler_task){.api = function_api(event->coll_api.function),
                                      .count = event->coll_api.count,
                                      .datatype = profile_datatype(event->coll_api.datatype),
                                      .captured = event->coll_api.captured,
                                      .stream = event->coll_api.stream,
                                      .has_stream = true};
        task.root = profile_root(task.api, event->coll_api.root);
        *handle = profiler_call(PROFILER_PLACE, context, &task);
        break;
    case PROFILE_P2P_API:
        *handle =
            profiler_message_call(PROFILER_PLACE, event->p2p_api.stream, event->p2p_api.captured);
        break;
    case PROFILE_GROUP:
        *handle = profiler_plan();
        break;
    case PROFILE_COLL:
        task = COLL(event, function_api(event->coll.function),
                    profile_datatype(event->coll.datatype), 0, event->coll.channels);
        *handle = profiler_task(PROFILER_PLACE, context, event->parent, &task);
        break;
    case PROFILE_P2P:
        task = P2P(event, function_api(event->p2p.function), profile_datatype(event->p2p.datatype),
                   0, 0);
        *handle = profiler_task(PROFILER_PLACE, context, event->parent, &task);
        break;
    case PROFILE_KERNEL_CH:
        *handle = profiler_channel(event->parent);
        break;
    case PROFILE_CE_COLL:
        *handle = profiler_copy_engine(event->parent);
        break;
    default:
        break;
    }
    return ncclSuccess;
}

enum {
    WANTED = PROFILE_GROUP | PROFILE_COLL | PROFILE_P2P,
    WANTED_CHANNELS = WANTED | PROFILE_KERNEL_CH,
    WANTED_CALLS = WANTED_CHANNELS | PROFILE_GROUP_API | PROFILE_COLL_API | PROFILE_P2P_API,
    WANTED_COPIES = WANTED_CALLS | PROFILE_CE_COLL
};

static ncclResult_t init_profiler_v1(void **context, int *mask)
{
    profiler_init(PROFILER_PLACE, context, mask, WANTED, 0, -1, -1);
    return ncclSuccess;
}

static ncclResult_t init_profiler_v3(void **context, int *mask)
{
    profiler_init(PROFILER_PLACE, context, mask, WANTED_CHANNELS, 0, -1, -1);
    return ncclSuccess;
}

static ncclResult_t init_profiler_v4(void **context, int *mask, const char *name,
                                     uint64_t comm_hash, int nodes, int ranks, int rank,
                                     profile_logger *log)
{
    (void)name, (void)nodes, (void)log;
    profiler_init(PROFILER_PLACE, context, mask, WANTED_CHANNELS, comm_hash, ranks, rank);
    return ncclSuccess;
}

static ncclResult_t init_profiler_v5(void **context, uint64_t comm_hash, int *mask,
                                     const char *name, int nodes, int ranks, int rank,
                                     profile_logger *log)
{
    (void)name, (void)nodes, (void)log;
    profiler_init(PROFILER_PLACE, context, mask, WANTED_CALLS, comm_hash, ranks, rank);
    return ncclSuccess;
}

static ncclResult_t init_profiler_v6(void **context, uint64_t comm_hash, int *mask,
                                     const char *name, int nodes, int ranks, int rank,
                                     profile_logger *log)
{
    (void)name, (void)nodes, (void)log;
    profiler_init(PROFILER_PLACE, context, mask, WANTED_COPIES, comm_hash, ranks, rank);
    return ncclSuccess;
}

static ncclResult_t stop_event(void *handle)
{
    profiler_stop(PROFILER_PLACE, handle);
    return ncclSuccess;
}

static ncclResult_t record_state(void *handle, int state, union profile_state_arguments *arguments)
{
    (void)arguments;
    profiler_state(PROFILER_PLACE, handle, state);
    return ncclSuccess;
}

static ncclResult_t finalize_profiler(void *context)
{
    profiler_finalize(context);
    return ncclSuccess;
}

#define TABLE(version, init, start)                                    \
    EXPORT struct nccl_profiler_v##version ncclProfiler_v##version = { \
        "ddpcheck", init, start, stop_event, record_state, finalize_profiler}
TABLE(1, init_profiler_v1, start_profile_v1);
TABLE(2, init_profiler_v1, start_profile_v2);
TABLE(3, init_profiler_v3, start_profile_v3);
TABLE(4, init_profiler_v4, start_profile_v4);
TABLE(5, init_profiler_v5, start_profile_v5);
TABLE(6, init_profiler_v6, start_profile_v5);
TABLE(7, init_profiler_v6, start_profile_v5);
