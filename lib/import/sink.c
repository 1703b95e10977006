/* sink.c: who is there: processes, communicators and their members. */
#include "lib/import/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/import/input.h"

enum {
    /* Ranks take turns in pieces of this: records of one process that lie together are stored and
     * analysed twice as fast as such that take turns one by one. The collector reads rings in such
     * turns, too. */
    TURN_NS = 100000000,
    UNTIMED_STEP_NS = TURN_NS / 64 /* between two records of a process that have no time */
};

int sink_failed(struct import *import, const struct error *err)
{
    if (!import->failure.text[0])
        import->failure = *err;
    return -1;
}

int sink_no_memory(struct import *import)
{
    struct error err;
    error_memory(&err, "can't import");
    return sink_failed(import, &err);
}

struct import_process import_process_new(void)
{
    return (struct import_process){.rank = -1, .local_rank = -1, .world_size = -1};
}

struct import_member import_member_new(void)
{
    return (struct import_member){.rank = -1, .nranks = -1, .device = -1};
}

static uint64_t hash_more(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static uint64_t identity_of(const struct import *import, const struct import_process *process)
{
    int number = process->pid > 0 ? process->pid : process->rank;
    char kind = process->pid > 0 ? 'p' : 'r';
    uint64_t hash =
        hash_more(14695981039346656037u, import->source->name, strlen(import->source->name) + 1);
    hash = hash_more(hash, process->host ? process->host : "",
                     process->host ? strlen(process->host) + 1 : 1);
    hash = hash_more(hash_more(hash, &kind, 1), &number, sizeof number);
    return process->key ? hash_more(hash, process->key, strlen(process->key) + 1) : hash;
}

static void learn_text(char *to, size_t bytes, const char *text)
{
    if (!*to && text)
        snprintf(to, bytes, "%s", text);
}

static void merge_process(struct sink_process *known, const struct import_process *process)
{
    struct process_info *info = &known->info;
    if (info->pid <= 0)
        info->pid = process->pid;
    if (info->rank < 0)
        info->rank = process->rank;
    if (info->local_rank < 0)
        info->local_rank = process->local_rank;
    if (info->world_size < 0)
        info->world_size = process->world_size;
    if (info->nccl_version <= 0 && process->nccl_version > 0)
        info->nccl_version = process->nccl_version;
    info->lacks |= process->lacks;
    learn_text(info->host, sizeof info->host, process->host);
    learn_text(info->job, sizeof info->job, process->job);
    learn_text(info->program, sizeof info->program, process->program);
}

static struct sink_process *new_process(struct import *import, uint64_t identity,
                                        const struct import_process *reported)
{
    if (!ARRAY_ADD(import->process, import->processes))
        return NULL;
    struct sink_process *process = calloc(1, sizeof *process);
    const char *file = reported->file;
    if (!file)
        file = import->input ? input_path(import->input) : "";
    if (!process || !(process->file = strdup(file))) {
        free(process);
        return NULL;
    }
    process->identity = identity;
    process->index = import->processes;
    process->source = import->source;
    process->title = reported->title ? reported->title : import->source->title;
    process->info = (struct process_info){
        .rank = -1,
        .local_rank = -1,
        .world_size = -1,
        .restart = -1,
        .nccl_version = -1,
        .cuda_runtime_version = -1,
        .cuda_driver_version = -1,
        .lacks = import->source->lacks,
    };
    /* Each has a clock of its own: until when it is known differs from process to process. */
    snprintf(process->info.boot_id, sizeof process->info.boot_id, "import %d", process->index);
    snprintf(process->info.launcher, sizeof process->info.launcher, "%s", import->source->name);
    HASH_ADD(hh, import->process_table, identity, sizeof identity, process);
    return import->process[import->processes++] = process;
}

int import_process(struct import *import, const struct import_process *process)
{
    uint64_t identity = identity_of(import, process);
    struct sink_process *known;
    HASH_FIND(hh, import->process_table, &identity, sizeof identity, known);
    if (!known && !(known = new_process(import, identity, process)))
        return sink_no_memory(import);
    merge_process(known, process);
    return known->index;
}

const char *import_process_file(const struct import *import, int process)
{
    return import->process[process]->serial ? import->process[process]->file : NULL;
}

void import_process_rank(struct import *import, int process, int rank)
{
    import->process[process]->info.rank = rank;
}

void import_process_rank_of(struct import *import, int process, int rank, int nranks)
{
    struct sink_process *known = import->process[process];
    bool is_wider = nranks > known->widest;
    if (is_wider)
        known->widest = nranks;
    if (is_wider || known->info.rank < 0)
        import_process_rank(import, process, rank);
}

void import_process_lacks(struct import *import, int process, uint32_t lacks)
{
    import->process[process]->info.lacks |= lacks;
}

static struct sink_comm *comm_get(struct import *import, uint64_t id)
{
    struct sink_comm *comm;
    HASH_FIND(hh, import->comms, &id, sizeof id, comm);
    if (comm || !(comm = calloc(1, sizeof *comm)))
        return comm;
    comm->id = id;
    comm->nranks = -1;
    HASH_ADD(hh, import->comms, id, sizeof id, comm);
    import->result.communicators++;
    return comm;
}

int sink_record(struct import *import, struct sink_process *process, uint64_t time_ns,
                struct record *record, uint32_t part)
{
    struct error err;
    if (import->failure.text[0] || (time_ns && sink_report_changes(import, process, time_ns)))
        return -1;
    if (time_ns && !process->first_ns)
        process->first_ns = time_ns;
    if (!time_ns)
        time_ns = process->key +
                  (process->first_ns ? 0 : UNTIMED_STEP_NS); /* a known time: the same moment */
    if (process->key < time_ns)
        process->key = time_ns;
    record->time_ns = process->key;
    if (record->api < API_notice_progress || record->api > API_notice_known)
        record->serial = ++process->serial;
    struct sorted item = {process->key / TURN_NS, (uint32_t)process->index, part, *record};
    if (sorter_add(import->sorter, &item, &err))
        return sink_failed(import, &err);
    import->result.records++;
    return 0;
}

static struct sink_member *new_member(struct import *import, const struct lane_key *key,
                                      struct sink_process *process)
{
    if (!ARRAY_ADD(import->member, import->members))
        return NULL;
    struct sink_member *member = calloc(1, sizeof *member), *first;
    if (!member)
        return NULL;
    member->key = *key;
    member->index = import->members;
    member->process = process->index;
    member->ordinal = process->members++;
    HASH_FIND(hh, import->member_table, key, sizeof *key, first);
    if (first) {
        member->same = first->same;
        first->same = member;
    } else {
        HASH_ADD(hh, import->member_table, key, sizeof *key, member);
    }
    return import->member[import->members++] = member;
}

static int emit_member_notice(struct import *import, struct sink_member *member,
                              const struct import_member *reported)
{
    struct record record = {.api = API_notice_member, .device = member->device};
    record.comm.comm = member->comm->id;
    record.comm.parent = reported->parent ? string_id(reported->parent, strlen(reported->parent))
                                          : 0;
    record.comm.nranks = reported->nranks;
    record.comm.rank = member->rank;
    record.comm.device = member->device;
    record.comm.gpu = reported->gpu;
    return sink_record(import, import->process[member->process], reported->time_ns, &record, 0);
}

/* The text's id; 0 for an empty text, or when memory is short (*failed). */
static uint64_t title_text(struct import *import, const struct sink_member *member,
                           const char *text, bool *failed)
{
    uint64_t id = text && *text ? import_text(import, member->process, text, strlen(text)) : 0;
    *failed |= text && *text && !id;
    return id;
}

static int emit_title(struct import *import, const struct sink_member *member,
                      const struct import_member *reported)
{
    struct record record = {.api = API_notice_comm_name, .device = RECORD_NO_DEVICE};
    bool failed = false;
    record.range.text = title_text(import, member, reported->title, &failed);
    record.range.domain = title_text(import, member, reported->ranks, &failed);
    record.range.id = member->comm->id;
    if (failed || (!record.range.text && !record.range.domain))
        return failed ? -1 : 0;
    return sink_record(import, import->process[member->process], reported->time_ns, &record, 0);
}

int import_member(struct import *import, int process, const struct import_member *reported)
{
    struct lane_key key = {reported->comm ? string_id(reported->comm, strlen(reported->comm))
                                          : reported->comm_id,
                           reported->rank};
    struct sink_comm *comm = comm_get(import, key.stream);
    if (!comm)
        return sink_no_memory(import);
    if (comm->nranks < 0)
        comm->nranks = reported->nranks;
    struct sink_member *member;
    HASH_FIND(hh, import->member_table, &key, sizeof key, member);
    while (member && member->process != process)
        member = member->same;
    if (member)
        return member->index;
    if (!(member = new_member(import, &key, import->process[process])))
        return sink_no_memory(import);
    member->comm = comm;
    member->rank = reported->rank;
    member->device = reported->device;
    return emit_member_notice(import, member, reported) || emit_title(import, member, reported)
               ? -1
               : member->index;
}

int import_member_end(struct import *import, int index, bool aborted, uint64_t time_ns)
{
    struct sink_member *member = import->member[index];
    struct record record = {
        .api = aborted ? API_ncclCommAbort : API_ncclCommDestroy,
        .phase = RECORD_ENTER,
        .flags = RECORD_FLAG_OVER,
        .thread = 1,
        .device = member->device,
    };
    record.comm.comm = member->comm->id;
    record.comm.rank = member->rank;
    record.comm.nranks = member->comm->nranks;
    record.comm.device = member->device;
    return sink_record(import, import->process[member->process], time_ns, &record, 0);
}

int import_known_until(struct import *import, int process, uint64_t time_ns)
{
    if (import->process[process]->known_until_ns < time_ns)
        import->process[process]->known_until_ns = time_ns;
    return import->failure.text[0] ? -1 : 0;
}

int import_process_end(struct import *import, int process, enum end_how how, int value,
                       uint64_t time_ns)
{
    struct record record = {.api = API_notice_end, .device = RECORD_NO_DEVICE};
    record.end.how = how;
    record.end.value = value;
    return sink_record(import, import->process[process], time_ns, &record, 0);
}

/* --- what processes did beside their calls --- */

int import_iteration(struct import *import, int index, uint64_t number, uint64_t time_ns)
{
    struct sink_process *process = import->process[index];
    struct record record = {.api = API_nvtxRangePop, .thread = 1, .device = RECORD_NO_DEVICE};
    if (process->in_iteration && sink_record(import, process, time_ns, &record, 0))
        return -1;
    char name[40];
    int bytes = snprintf(name, sizeof name, "iteration %llu", (unsigned long long)number);
    record.api = API_nvtxRangePush;
    record.range.text = import_text(import, index, name, (size_t)bytes);
    process->in_iteration = true;
    return record.range.text ? sink_record(import, process, time_ns, &record, 0) : -1;
}

int import_activity(struct import *import, int process, const struct import_activity *activity)
{
    struct record record = {.api = API_notice_activity, .thread = 1, .device = RECORD_NO_DEVICE};
    record.activity.name = import_text(import, process, activity->name, strlen(activity->name));
    record.activity.begin_ns = activity->begin_ns;
    record.activity.iteration = activity->iteration == UINT64_MAX ? 0 : activity->iteration + 1;
    record.activity.kind = activity->kind;
    return sink_record(import, import->process[process], activity->end_ns, &record, 0);
}

/* --- what could not be taken --- */

enum { REFUSALS_OF_FILE = 3, REFUSALS_PRINTED_MAX = 30 };

/* Of what could not be taken the first of each file and of all are printed, the rest is counted. */

void import_print(struct import *import, const char *message)
{
    import->options->say(import->options->context, message);
}

void import_refuse(struct import *import, const char *format, ...)
{
    struct error err;
    import->result.refused++;
    if (import->refused_here++ >= REFUSALS_OF_FILE ||
        import->refusals_printed == REFUSALS_PRINTED_MAX)
        return;
    import->refusals_printed++;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err.text, sizeof err.text, format, arguments);
    va_end(arguments);
    import_print(import, err.text);
}

void refusals_end_file(struct import *import)
{
    char more[128];
    if (import->refused_here <= REFUSALS_OF_FILE ||
        import->refusals_printed >= REFUSALS_PRINTED_MAX)
        return;
    snprintf(more, sizeof more, "... and %llu more in that file",
             (unsigned long long)(import->refused_here - REFUSALS_OF_FILE));
    import_print(import, more);
}

void refusals_end(struct import *import)
{
    char rest[128];
    if (import->refusals_printed < REFUSALS_PRINTED_MAX ||
        import->result.refused == import->refusals_printed)
        return;
    snprintf(rest, sizeof rest, "... and %llu more, in all files",
             (unsigned long long)(import->result.refused - import->refusals_printed));
    import_print(import, rest);
}

void **import_state(struct import *import)
{
    return import->source_state;
}
