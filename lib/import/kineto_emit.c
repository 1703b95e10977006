/* kineto_emit.c: imports one file's calls and kernels, in the order of time. */
#include "lib/import/kineto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The GPU was recorded, too. */
static bool has_kernels(const struct kineto *kineto)
{
    return kineto->joined > 0;
}

static uint64_t convert_time(const struct kineto *kineto, int64_t ns)
{
    return (uint64_t)(kineto->base_ns + ns);
}

/* The member that the process is in the call's group; -1 if it can't be known (said once), -2 on
 * failure. */
static int get_group_member(struct kineto *kineto, struct kineto_group *group,
                            const struct kineto_row *row)
{
    if (group->member >= 0 || group->member == -2)
        return group->member >= 0 ? group->member : -1;
    int rank = kineto_group_own_rank(&kineto->groups, group, kineto->rank);
    if (rank < 0) {
        group->member = -2;
        import_refuse(kineto->import,
                      "%s: the calls of process group '%s' are left out: the file does not say "
                      "which rank of it this is",
                      kineto->path, group->name);
        return -1;
    }
    struct import_member member = import_member_new();
    member.comm = group->key;
    member.rank = rank;
    member.nranks = group->size > 0 && group->size < INT32_MAX ? (int)group->size : -1;
    member.device =
        row->has_kernel && row->device >= 0 && row->device < INT16_MAX ? (int)row->device : -1;
    member.time_ns = convert_time(kineto, row->ts_ns);
    group->member = import_member(kineto->import, kineto->process, &member);
    return group->member < 0 ? -2 : group->member;
}

static uint64_t known(int64_t value)
{
    return value > 0 ? (uint64_t)value : IMPORT_UNKNOWN;
}

/* Elements as NCCL's call has them. Older files overflow at 2^31. */
static uint64_t count_of(const struct kineto_row *row, const struct kineto_group *group)
{
    int64_t count = row->collective->elements == KIND_OF_OUT ? row->out : row->in;
    if (row->collective->elements == KIND_OF_UNSAID || row->split || count < 0)
        return IMPORT_UNKNOWN;
    if (row->collective->elements != KIND_OF_SPLIT)
        return (uint64_t)count;
    return group->size > 0 ? (uint64_t)(count / group->size) : IMPORT_UNKNOWN;
}

static void number_call(struct kineto_group *group, const struct kineto_row *row,
                        struct import_call *call)
{
    if (row->seq <= 0 || (group->seq != KINETO_UNKNOWN && row->seq < group->seq))
        return;
    group->part = row->seq == group->seq ? group->part + 1 : 0;
    group->seq = row->seq;
    call->number = (uint64_t)row->seq - 1;
    call->part = group->part;
}

/* Makes the call, and remembers it until its kernels have ended. */
static int make_call(struct kineto *kineto, const struct import_call *call, int64_t external)
{
    if (import_call(kineto->import, call))
        return -1;
    struct launch *launch;
    HASH_FIND(hh, kineto->launches, &external, sizeof external, launch);
    if (call->state == IMPORT_STATE_UNKNOWN || launch)
        return 0;
    if (!(launch = calloc(1, sizeof *launch)))
        return error_memory(&kineto->err, "can't read %s", kineto->path);
    launch->external = external;
    launch->launch = import_last_launch(kineto->import);
    HASH_ADD(hh, kineto->launches, external, sizeof launch->external, launch);
    return 0;
}

/* Sends and receives that are pending: as one ncclGroup, or each by itself. */
static int flush(struct kineto *kineto, bool as_group)
{
    kineto->group += as_group;
    for (int i = 0; i < kineto->pendings; i++) {
        kineto->pending[i].call.group = as_group ? kineto->group : 0;
        if (make_call(kineto, &kineto->pending[i].call, kineto->pending[i].external))
            return -1;
    }
    kineto->pendings = 0;
    return 0;
}

static int visit_kernel(struct kineto *kineto, const struct kineto_row *row)
{
    struct launch *launch;
    HASH_FIND(hh, kineto->launches, &row->external, sizeof row->external, launch);
    if (!launch && kineto->pendings && !flush(kineto, false))
        HASH_FIND(hh, kineto->launches, &row->external, sizeof row->external, launch);
    if (!launch)
        return 0;
    enum import_state state = row->kind == ROW_BEGIN ? IMPORT_STARTED : IMPORT_DONE;
    int result = import_launch_state(kineto->import, launch->launch, state,
                                     convert_time(kineto, row->ts_ns));
    if (row->kind == ROW_END) {
        HASH_DEL(kineto->launches, launch);
        free(launch);
    }
    return result;
}

static int visit_call(struct kineto *kineto, const struct kineto_row *row)
{
    struct kineto_group *group = kineto->groups.by_index[row->group];
    bool is_p2p = kind_has(row->collective->api, KIND_TO_PEER);
    if (row->wraps ||
        (!kineto->has_seq && kineto->step_ns != KINETO_UNKNOWN && row->ts_ns < kineto->step_ns))
        return 0;
    int member = get_group_member(kineto, group, row);
    if (member < 0)
        return member == -2 ? -1 : 0;
    if (is_p2p && (row->rank < 0 || row->rank >= INT32_MAX)) {
        import_refuse(kineto->import, "%s: a %s of process group '%s' without its peer (\"Rank\")",
                      kineto->path, row->collective->name, group->name);
        return 0;
    }
    struct import_call call = import_call_new(member, row->collective->api);
    call.count = count_of(row, group);
    call.datatype = row->collective->elements == KIND_OF_UNSAID && row->in == 0 ? TYPE_NONE
                                                                                : row->datatype;
    if (kind_has(row->collective->api, KIND_ROOTED | KIND_TO_PEER) && row->rank >= 0 &&
        row->rank < INT32_MAX)
        call.root = (int32_t)row->rank;
    call.sendbuff = known(row->send);
    call.recvbuff = known(row->recv);
    call.time_ns = convert_time(kineto, row->ts_ns);
    call.thread = (uint32_t)row->tid;
    /* The kernel of a group of messages may belong to none of its calls. */
    call.state = row->has_kernel || (has_kernels(kineto) && !is_p2p) ? IMPORT_ISSUED
                                                                     : IMPORT_STATE_UNKNOWN;
    if (!is_p2p) {
        number_call(group, row, &call);
        return flush(kineto, false) ? -1 : make_call(kineto, &call, row->external);
    }
    if (kineto->pendings == KINETO_PENDING_MAX && flush(kineto, false))
        return -1;
    kineto->pending[kineto->pendings++] = (struct pending){call, row->external};
    return 0;
}

static int visit_work(struct kineto *kineto, const struct kineto_row *row)
{
    if (!kineto->has_seq && kineto->step_ns != KINETO_UNKNOWN && row->begin_ns < kineto->step_ns)
        return 0;
    const struct import_activity activity = {.name = row->name,
                                             .kind = ACTIVITY_COMPUTE,
                                             .begin_ns = convert_time(kineto, row->begin_ns),
                                             .end_ns = convert_time(kineto, row->ts_ns),
                                             .iteration = UINT64_MAX};
    return import_activity(kineto->import, kineto->process, &activity);
}

static int emit_kineto_row(void *context, const struct kineto_row *row)
{
    struct kineto *kineto = context;
    if (row->kind == ROW_CALL)
        return visit_call(kineto, row);
    if (row->kind == ROW_BEGIN || row->kind == ROW_END)
        return visit_kernel(kineto, row);
    if (row->kind == ROW_WORK)
        return visit_work(kineto, row);
    return flush(kineto, row->kind == ROW_COALESCED);
}

/* The number behind "rank" in the file's name, for files without distributedInfo; KINETO_UNKNOWN if
 * there is none. */
static int64_t parse_trace_rank(const char *path)
{
    const char *name = strrchr(path, '/'), *found = NULL;
    for (const char *at = name ? name : path; (at = strstr(at, "rank")); at++)
        found = at + 4;
    if (!found)
        return KINETO_UNKNOWN;
    found += *found == '_' || *found == '-';
    return *found >= '0' && *found <= '9' && strlen(found) < 32
               ? strtoll(found, NULL, 10) % INT32_MAX
               : KINETO_UNKNOWN;
}

/* The number, if it is at least `least` and an int has room for it. */
static int int_or(int64_t number, int64_t least, int otherwise)
{
    return number >= least && number < INT32_MAX ? (int)number : otherwise;
}

static int make_process(struct kineto *kineto)
{
    struct import_process process = import_process_new();
    if (kineto->rank == KINETO_UNKNOWN)
        kineto->rank = parse_trace_rank(kineto->path);
    process.rank = int_or(kineto->rank, 0, -1);
    process.world_size = int_or(kineto->world_size, 1, -1);
    process.pid = int_or(kineto->pid, 1, 0);
    process.nccl_version = kineto->nccl_version;
    process.lacks = kineto->has_address ? 0 : LACKS_ADDRESSES;
    if (!has_kernels(kineto))
        process.lacks |= LACKS_STATE;
    if (process.rank < 0)
        process.key = kineto->path;
    return kineto->process = import_process(kineto->import, &process);
}

int kineto_emit(struct kineto *kineto, struct error *err)
{
    if (!kineto->calls) {
        if (kineto->gloo)
            import_refuse(
                kineto->import,
                "%s: its %" PRIu64
                " collectives are gloo's, which do not say their process group: only NCCL's "
                "are taken",
                kineto->path, kineto->gloo);
        else if (kineto->unnamed || kineto->old)
            import_refuse(kineto->import,
                          "%s: it has %" PRIu64
                          " NCCL operations, but was recorded before PyTorch wrote what they are "
                          "(group, size, type): record again with PyTorch >= 2.4",
                          kineto->path, kineto->unnamed ? kineto->unnamed : kineto->old);
        else
            import_refuse(kineto->import,
                          "%s: no collective calls (record_param_comms) among its %" PRIu64
                          " events: record with "
                          "ProfilerActivity.CPU",
                          kineto->path, kineto->events);
        return 0;
    }
    if (kineto->unnamed)
        import_refuse(kineto->import,
                      "%s: %" PRIu64 " calls (record_param_comms) without \"Collective name\"",
                      kineto->path, kineto->unnamed);
    if (kineto_stage_join(kineto->stage, &kineto->joined, &kineto->lonely, err))
        return -1;
    if (make_process(kineto) < 0 ||
        kineto_stage_visit(kineto->stage, emit_kineto_row, kineto, err) || flush(kineto, false)) {
        if (!err->text[0])
            *err = kineto->err;
        return -1;
    }
    if (kineto->lonely)
        import_refuse(kineto->import,
                      "%s: %" PRIu64 " of %" PRIu64
                      " NCCL kernels belong to no call of the file (\"External id\", "
                      "\"correlation\"): their times are not known",
                      kineto->path, kineto->lonely, kineto->joined + kineto->lonely);
    return import_known_until(kineto->import, kineto->process,
                              convert_time(kineto, kineto->last_ns));
}

void kineto_forget_launches(struct kineto *kineto)
{
    struct launch *launch, *next;
    HASH_ITER(hh, kineto->launches, launch, next) {
        HASH_DEL(kineto->launches, launch);
        free(launch);
    }
}
