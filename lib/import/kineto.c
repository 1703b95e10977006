/* kineto.c: traces of torch.profiler (Kineto, Chrome's trace format), of any size.
 *
 * The calls are the rows "record_param_comms" of the CPU, one file per rank; their kernels are joined to them by "External id".
 * With "Seq" (PyTorch since 2026) a call's number is the process group's own; without, calls are counted from the first
 * ProfilerStep, or from the beginning where there are no steps: profilers are started at the same place of the program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/import.h"
#include "lib/import/kineto_group.h"
#include "lib/import/kineto_stage.h"

enum { PENDING_MAX = 4096 };

struct kineto {
    struct import *import;
    struct import_input *input;
    const char *path;
    struct json_stream *json;
    struct kineto_stage *stage;
    struct kineto_groups groups;
    struct kineto_event event;
    int64_t base_ns, rank, world_size, pid;
    int nccl_version;
    int64_t last_ns, step_ns;       /* the last event; the first ProfilerStep (KINETO_UNKNOWN none) */
    uint64_t events, calls, kernels, unjoined, gloo;
    bool has_seq, has_address, has_kernel;
    /* what follows is used when the file has been read */
    int process;
    uint64_t group;                 /* of calls that are launched together */
    struct import_call pending[PENDING_MAX];        /* sends and receives, until it is known whether they are one group */
    int pendings;
    struct error err;
};

static int64_t read_input(void *context, void *buffer, size_t bytes, struct error *err)
{
    return input_read(context, buffer, bytes, err);
}

static int no_memory(struct kineto *kineto)
{
    return error_set(&kineto->err, "%s: memory is short", kineto->path);
}

/* "2.27.5" to 22705; older ones to NCCL's older form. */
static int version_of(const char *text)
{
    int major = 0, minor = 0, patch = 0;
    if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2 || major < 0 || major > 99 || minor < 0 || minor > 99)
        return 0;
    return major == 2 && minor <= 8 ? major * 1000 + minor * 100 + patch : major * 10000 + minor * 100 + patch;
}

static int read_group_config(struct kineto *kineto)
{
    char name[KINETO_NAME_MAX] = "";
    enum json_token token;
    kineto->event.ranks[0] = '\0';
    while ((token = json_next(kineto->json)) == TOKEN_KEY) {
        const char *key = json_text(kineto->json, NULL);
        int result = !strcmp(key, "pg_name") ? kineto_text_read(kineto->json, name, sizeof name)
                   : !strcmp(key, "ranks") ? kineto_ranks_read(kineto->json, kineto->event.ranks, sizeof kineto->event.ranks)
                                           : json_skip(kineto->json);
        if (result)
            return -1;
    }
    if (token == TOKEN_ERROR)
        return -1;
    if (kineto_group_config(&kineto->groups, name, kineto->event.ranks))
        return no_memory(kineto);
    return 0;
}

static int read_configs(struct kineto *kineto)
{
    enum json_token token = json_next(kineto->json);
    if (token != TOKEN_ARRAY)
        return json_skip(kineto->json);
    while ((token = json_next(kineto->json)) != TOKEN_ARRAY_END)
        if (token == TOKEN_ERROR || (token == TOKEN_OBJECT ? read_group_config(kineto) : json_skip(kineto->json)))
            return -1;
    return 0;
}

static int read_distributed(struct kineto *kineto)
{
    char version[64] = "";
    enum json_token token;
    if (json_next(kineto->json) != TOKEN_OBJECT)
        return json_skip(kineto->json);
    while ((token = json_next(kineto->json)) == TOKEN_KEY) {
        const char *key = json_text(kineto->json, NULL);
        int result;
        if (!strcmp(key, "rank"))
            result = kineto_number_read(kineto->json, &kineto->rank);
        else if (!strcmp(key, "world_size"))
            result = kineto_number_read(kineto->json, &kineto->world_size);
        else if (!strcmp(key, "nccl_version"))
            result = kineto_text_read(kineto->json, version, sizeof version);
        else if (!strcmp(key, "pg_config"))
            result = read_configs(kineto);
        else
            result = json_skip(kineto->json);
        if (result)
            return -1;
    }
    kineto->nccl_version = version_of(version);
    return token == TOKEN_ERROR ? -1 : 0;
}

/* A call that can't be used is said and left out. */
static int keep_call(struct kineto *kineto)
{
    struct kineto_event *event = &kineto->event;
    if (event->ts_ns == KINETO_UNKNOWN) {
        import_refuse(kineto->import, "%s: byte %" PRIu64 ": a call (record_param_comms) without its time (ts)", kineto->path,
                      event->offset);
        return 0;
    }
    if (!event->collective) {
        import_refuse(kineto->import, "%s: byte %" PRIu64 ": a call (record_param_comms) %s%s", kineto->path, event->offset,
                      *event->collective_name ? "of an unknown kind: " : "without \"Collective name\"", event->collective_name);
        return 0;
    }
    if (event->collective->api == API_NONE)
        return 0;
    struct kineto_group *group = kineto_group_of(&kineto->groups, event);
    if (!group)
        return error_set(&kineto->err, "%s: byte %" PRIu64 ": memory is short, or there are more than %d process groups",
                         kineto->path, event->offset, KINETO_GROUPS_MAX);
    kineto->calls++;
    kineto->has_seq |= event->number[KINETO_SEQ] > 0;
    kineto->has_address |= event->number[KINETO_SEND] > 0 || event->number[KINETO_RECV] > 0;
    if (kineto->pid == KINETO_UNKNOWN)
        kineto->pid = event->pid;
    return kineto_stage_call(kineto->stage, event, group->index, &kineto->err);
}

static int keep_event(struct kineto *kineto)
{
    struct kineto_event *event = &kineto->event;
    kineto->events++;
    if (event->ts_ns > kineto->last_ns)
        kineto->last_ns = event->ts_ns;
    bool timed = event->ts_ns != KINETO_UNKNOWN;
    switch (event->kind) {
    case KINETO_CALL:
        return keep_call(kineto);
    case KINETO_KERNEL:
        kineto->kernels++;
        if (timed && event->number[KINETO_EXTERNAL] != KINETO_UNKNOWN)
            return kineto_stage_kernel(kineto->stage, event, &kineto->err);
        kineto->unjoined++;
        return 0;
    case KINETO_ALONE:
    case KINETO_COALESCED:
        return timed ? kineto_stage_mark(kineto->stage, event, &kineto->err) : 0;
    case KINETO_STEP:
        if (timed && (kineto->step_ns == KINETO_UNKNOWN || event->ts_ns < kineto->step_ns))
            kineto->step_ns = event->ts_ns;
        return 0;
    case KINETO_GLOO:
        kineto->gloo++;
        return 0;
    case KINETO_OTHER:
        break;
    }
    return 0;
}

/* The elements of an array of events whose TOKEN_ARRAY was read. */
static int read_events(struct kineto *kineto)
{
    enum json_token token;
    while ((token = json_next(kineto->json)) != TOKEN_ARRAY_END) {
        if (token == TOKEN_ERROR)
            return -1;
        if (token != TOKEN_OBJECT) {
            import_refuse(kineto->import, "%s: byte %" PRIu64 ": what stands among the events is no event", kineto->path,
                          json_offset(kineto->json));
            if (json_skip(kineto->json))
                return -1;
        } else if (kineto_event_read(kineto->json, &kineto->event) || keep_event(kineto)) {
            return -1;
        }
    }
    return 0;
}

static int read_document(struct kineto *kineto)
{
    struct json_stream *json = kineto->json;
    enum json_token token = json_next(json);
    if (token == TOKEN_ARRAY)       /* Chrome's other form: the events alone */
        return read_events(kineto);
    if (token != TOKEN_OBJECT)
        return token == TOKEN_ERROR ? -1 : error_set(&kineto->err, "%s: byte 0: no trace: neither an object nor an array", kineto->path);
    while ((token = json_next(json)) == TOKEN_KEY) {
        const char *key = json_text(json, NULL);
        int result;
        if (!strcmp(key, "traceEvents"))
            result = json_next(json) == TOKEN_ARRAY ? read_events(kineto) : json_skip(json);
        else if (!strcmp(key, "distributedInfo"))
            result = read_distributed(kineto);
        else if (!strcmp(key, "baseTimeNanoseconds"))
            result = kineto_number_read(json, &kineto->base_ns);
        else
            result = json_skip(json);
        if (result)
            return -1;
    }
    return token == TOKEN_ERROR || json_next(json) == TOKEN_ERROR ? -1 : 0;
}

static uint64_t time_of(const struct kineto *kineto, int64_t ns)
{
    return (uint64_t)(kineto->base_ns + ns);
}

/* The member that the process is in the call's group; -1 if it can't be known (said once), -2 on failure. */
static int member_of(struct kineto *kineto, struct kineto_group *group, const struct kineto_row *row)
{
    if (group->member >= 0 || group->member == -2)
        return group->member >= 0 ? group->member : -1;
    int rank = kineto_group_own_rank(&kineto->groups, group, kineto->rank);
    if (rank < 0) {
        group->member = -2;
        import_refuse(kineto->import, "%s: the calls of process group '%s' are left out: the file does not say which rank of it this is",
                      kineto->path, group->name);
        return -1;
    }
    struct import_member member = import_member_new();
    member.comm = group->key;
    member.rank = rank;
    member.nranks = group->size > 0 && group->size < INT32_MAX ? (int)group->size : -1;
    member.device = row->has_kernel && row->device >= 0 && row->device < INT16_MAX ? (int)row->device : -1;
    member.time_ns = time_of(kineto, row->ts_ns);
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
    int64_t count = row->collective->count == COUNT_OUT ? row->out : row->in;
    if (row->collective->count == COUNT_NONE || count < 0)
        return IMPORT_UNKNOWN;
    if (row->collective->count == COUNT_SPLIT)
        return row->split || group->size <= 0 ? IMPORT_UNKNOWN : (uint64_t)(count / group->size);
    return (uint64_t)count;
}

static void number_call(struct kineto_group *group, const struct kineto_row *row, struct import_call *call)
{
    if (row->seq <= 0 || (group->seq != KINETO_UNKNOWN && row->seq < group->seq))
        return;
    group->part = row->seq == group->seq ? group->part + 1 : 0;
    group->seq = row->seq;
    call->number = (uint64_t)row->seq - 1;
    call->part = group->part;
}

/* Sends and receives that are pending: as one ncclGroup, or each by itself. */
static int flush(struct kineto *kineto, bool as_group)
{
    kineto->group += as_group;
    for (int i = 0; i < kineto->pendings; i++) {
        kineto->pending[i].group = as_group ? kineto->group : 0;
        if (import_call(kineto->import, &kineto->pending[i]))
            return -1;
    }
    kineto->pendings = 0;
    return 0;
}

static int visit_call(struct kineto *kineto, const struct kineto_row *row)
{
    struct kineto_group *group = kineto->groups.by_index[row->group];
    bool is_p2p = row->collective->api == API_ncclSend || row->collective->api == API_ncclRecv;
    if (row->wraps || (!kineto->has_seq && kineto->step_ns != KINETO_UNKNOWN && row->ts_ns < kineto->step_ns))
        return 0;
    int member = member_of(kineto, group, row);
    if (member < 0)
        return member == -2 ? -1 : 0;
    if (is_p2p && (row->rank < 0 || row->rank >= INT32_MAX)) {
        import_refuse(kineto->import, "%s: a %s of process group '%s' without its peer (\"Rank\")", kineto->path,
                      row->collective->name, group->name);
        return 0;
    }
    struct import_call call = import_call_new(member, row->collective->api);
    call.count = count_of(row, group);
    call.datatype = row->collective->count == COUNT_NONE && row->in == 0 ? TYPE_NONE : row->datatype;
    if (row->collective->rooted && row->rank >= 0 && row->rank < INT32_MAX)
        call.root = (int32_t)row->rank;
    call.sendbuff = known(row->send);
    call.recvbuff = known(row->recv);
    call.time_ns = time_of(kineto, row->ts_ns);
    call.thread = (uint32_t)row->tid;
    call.state = row->has_kernel ? IMPORT_DONE : IMPORT_STATE_UNKNOWN;
    if (!is_p2p) {
        number_call(group, row, &call);
        return flush(kineto, false) ? -1 : import_call(kineto->import, &call);
    }
    if (kineto->pendings == PENDING_MAX && flush(kineto, false))
        return -1;
    kineto->pending[kineto->pendings++] = call;
    return 0;
}

static int visit(void *context, const struct kineto_row *row)
{
    struct kineto *kineto = context;
    if (row->kind == KINETO_CALL)
        return visit_call(kineto, row);
    return flush(kineto, row->kind == KINETO_COALESCED);
}

/* The number behind "rank" in the file's name, for files without distributedInfo; KINETO_UNKNOWN if there is none. */
static int64_t rank_of_name(const char *path)
{
    const char *name = strrchr(path, '/'), *found = NULL;
    for (const char *at = name ? name : path; (at = strstr(at, "rank")); at++)
        found = at + 4;
    if (!found)
        return KINETO_UNKNOWN;
    found += *found == '_' || *found == '-';
    return *found >= '0' && *found <= '9' && strlen(found) < 32 ? strtoll(found, NULL, 10) % INT32_MAX : KINETO_UNKNOWN;
}

static int make_process(struct kineto *kineto)
{
    struct import_process process = import_process_new();
    if (kineto->rank == KINETO_UNKNOWN)
        kineto->rank = rank_of_name(kineto->path);
    process.rank = kineto->rank >= 0 && kineto->rank < INT32_MAX ? (int)kineto->rank : -1;
    process.world_size = kineto->world_size > 0 && kineto->world_size < INT32_MAX ? (int)kineto->world_size : -1;
    process.pid = kineto->pid > 0 && kineto->pid < INT32_MAX ? (int)kineto->pid : 0;
    process.nccl_version = kineto->nccl_version;
    process.lacks = (kineto->has_address ? 0 : LACKS_ADDRESSES) | (kineto->kernels > kineto->unjoined ? 0 : LACKS_STATE);
    if (process.rank < 0)
        process.key = kineto->path;
    return kineto->process = import_process(kineto->import, &process);
}

/* Tells the sink what was kept, also of a file that ended in the middle. */
static int tell(struct kineto *kineto, struct error *err)
{
    if (!kineto->calls) {
        if (kineto->gloo)
            import_refuse(kineto->import, "%s: its %" PRIu64 " collectives are gloo's, which do not say their process group: only NCCL's "
                          "are taken", kineto->path, kineto->gloo);
        else
            import_refuse(kineto->import, "%s: no collective calls (record_param_comms) among its %" PRIu64 " events: record with "
                          "ProfilerActivity.CPU", kineto->path, kineto->events);
        return 0;
    }
    if (make_process(kineto) < 0 || kineto_stage_visit(kineto->stage, visit, kineto, err) || flush(kineto, false))
        return -1;
    uint64_t lonely = kineto->unjoined + kineto_stage_lonely_kernels(kineto->stage);
    if (lonely)
        import_refuse(kineto->import, "%s: %" PRIu64 " of %" PRIu64 " NCCL kernels belong to no call of the file (\"External id\"): their "
                      "times are not known", kineto->path, lonely, kineto->kernels);
    return import_known_until(kineto->import, kineto->process, time_of(kineto, kineto->last_ns));
}

static int read_file(struct kineto *kineto, struct error *err)
{
    const struct json_options options = { .lenient = true };
    if (json_open(&kineto->json, &options, read_input, kineto->input, err) || kineto_stage_new(&kineto->stage, err))
        return -1;
    int damaged = read_document(kineto);
    if (damaged && !kineto->err.text[0])
        error_set(&kineto->err, "%s: %s", kineto->path, json_error(kineto->json));
    if (tell(kineto, err))
        return -1;
    if (damaged)
        *err = kineto->err;
    return damaged;
}

static int read_kineto(struct import *import, struct import_input *input, struct error *err)
{
    struct kineto *kineto = calloc(1, sizeof *kineto);
    if (!kineto)
        return error_set(err, "%s: memory is short", input_path(input));
    kineto->import = import;
    kineto->input = input;
    kineto->path = input_path(input);
    kineto->rank = kineto->world_size = kineto->pid = kineto->step_ns = KINETO_UNKNOWN;
    int result = read_file(kineto, err);
    json_close(kineto->json);
    kineto_stage_free(kineto->stage);
    kineto_groups_free(&kineto->groups);
    free(kineto);
    return result;
}

static int sniff_kineto(const struct import_head *head)
{
    size_t space = strspn(head->bytes, " \t\r\n");
    if (head->bytes[space] != '{' && head->bytes[space] != '[')
        return 0;
    bool events = strstr(head->bytes, "\"traceEvents\""), base = strstr(head->bytes, "\"baseTimeNanoseconds\"");
    bool distributed = strstr(head->bytes, "\"distributedInfo\""), schema = strstr(head->bytes, "\"schemaVersion\"");
    if (schema && (events || base || distributed))
        return 95;
    if (events || distributed)
        return 80;
    return strstr(head->bytes, "\"record_param_comms\"") ? 70 : 0;
}

const struct import_source import_source_kineto = {
    .name = "kineto",
    .title = "torch.profiler trace (Kineto)",
    .lacks = LACKS_REDOP | LACKS_GROUP | LACKS_STACK | LACKS_CUDA | LACKS_START | LACKS_SETUP | LACKS_MARKS | LACKS_PAYLOAD |
             LACKS_END | LACKS_STREAM | LACKS_DEVICE,
    .sniff = sniff_kineto,
    .read = read_kineto,
};
