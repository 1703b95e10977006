/* log_job.c: keeps the processes and communicators of a log while it is read. */
#include "lib/import/log_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_files.h"
#include "lib/import/log_processes.h"
#include "lib/import/log_text.h"

enum { SAID_BYTES = 1024 };

int log_job_line(struct log_job *job, const char *text, size_t bytes)
{
    int result = 0;
    for (int i = 0; !result && i < LOG_READERS; i++)
        result = job->readers[i]->line(job, text, bytes);
    return result;
}

int log_job_begin_file(struct log_job *job, struct import *import, struct import_input *input)
{
    job->import = import;
    job->input = input;
    job->found = job->file_ns = job->dated_ns = 0;
    job->files++;
    job->file_process = NULL;
    if (job->modified_ns < input_modified_ns(input))
        job->modified_ns = input_modified_ns(input);
    if (!job->path && !(job->path = strdup(input_path(input))))
        return -1;
    for (int i = 0; i < LOG_READERS; i++)
        if (!job->state[i] && !(job->state[i] = calloc(1, job->readers[i]->state_bytes + 1)))
            return -1;
    return 0;
}

const char *log_job_name(const struct log_job *job)
{
    return job->files == 1 ? job->path : "the logs";
}

int log_process_index(const struct log_process *process)
{
    return process->index;
}

int log_process_hint(const struct log_job *job, const struct log_process *process)
{
    bool is_local = process->hint_is_name && job->ranks_are_local;
    return process->hint_differs || is_local ? -1 : process->hint;
}

/* The launcher's rank is the one that people know; without it, that in the largest communicator. */
static int find_world_rank(const struct log_job *job, const struct log_process *process)
{
    int most = job->widest > job->world ? job->widest : job->world,
        hint = log_process_hint(job, process);
    if (hint >= 0 && hint < most && process->rank != -2)
        return hint;
    return process->widest == job->widest ? process->rank : -1;
}

struct log_process *log_job_process_of_rank(struct log_job *job, int rank)
{
    struct log_process *found = NULL;
    for (struct log_process *process = job->processes; process; process = process->hh.next)
        if (find_world_rank(job, process) == rank) {
            if (found)
                return NULL;
            found = process;
        }
    return found;
}

/* --- processes --- */

/* A line that ran into the previous one has that one's last letters before its host's name. */
static struct log_process *known_by_end(struct log_job *job, const struct log_line *line)
{
    size_t bytes = strlen(line->host);
    for (struct log_process *process = job->processes; process; process = process->hh.next) {
        size_t own = strlen(process->key.host);
        if (process->key.pid == line->pid && own < bytes &&
            !strcmp(line->host + bytes - own, process->key.host))
            return process;
    }
    return NULL;
}

static void note_time(struct log_job *job, uint64_t time_ns)
{
    if (time_ns > job->last_ns)
        job->last_ns = time_ns;
    if (time_ns > job->file_ns)
        job->file_ns = time_ns;
    if (time_ns)
        job->dated_ns = time_ns;
    if (time_ns && (!job->first_ns || time_ns < job->first_ns))
        job->first_ns = time_ns;
}

static void take_hint(struct log_job *job, struct log_process *process, const struct log_line *line)
{
    process->has_calls |= line->level == LOG_CALL;
    process->has_times |= line->time_ns != 0;
    note_time(job, line->time_ns);
    if (line->rank < 0)
        return;
    process->hint_differs |= process->hint >= 0 && !process->hint_is_file &&
                             process->hint != line->rank;
    if (process->hint >= 0 && !process->hint_is_file)
        return;
    process->hint = line->rank;
    process->hint_is_file = process->hint_is_name = false;
    if (process->rank == -1)
        import_process_rank(job->import, process->index, line->rank);
}

/* A file's name says the rank of its only process. */
static void take_file_rank(struct log_job *job, struct log_process *process)
{
    struct log_process *first = job->file_process;
    if (!first) {
        job->file_process = process;
        process->hint = job->file_rank;
        process->hint_is_file = job->file_rank >= 0;
        process->hint_is_name = job->file_rank_is_name;
        return;
    }
    if (first->hint_is_file) {
        first->hint = -1;
        first->hint_is_file = false;
    }
}

struct log_process *log_job_process(struct log_job *job, const struct log_line *line)
{
    struct process_key key;
    struct log_process **recent = &job->recent[(unsigned)line->pid % RECENT_PROCESSES],
                       *process = *recent;
    if (process && process->key.pid == line->pid && !strcmp(process->key.host, line->host)) {
        take_hint(job, process, line);
        return process;
    }
    memset(&key, 0, sizeof key);
    snprintf(key.host, sizeof key.host, "%s", line->host);
    key.pid = line->pid;
    HASH_FIND(hh, job->processes, &key, sizeof key, process);
    if (!process)
        process = known_by_end(job, line);
    if (!process) {
        struct import_process reported = import_process_new();
        reported.host = key.host;
        reported.pid = key.pid;
        process = calloc(1, sizeof *process);
        if (!process)
            return NULL;
        *process = (struct log_process){
            .key = key, .hint = -1, .rank = -1, .index = import_process(job->import, &reported)};
        if (process->index < 0) {
            free(process);
            return NULL;
        }
        HASH_ADD(hh, job->processes, key, sizeof process->key, process);
        take_file_rank(job, process);
    }
    *recent = process;
    take_hint(job, process, line);
    return process;
}

uint64_t log_job_dated(const struct log_job *job)
{
    return job->dated_ns ? job->dated_ns : job->last_ns;
}

void log_job_time(struct log_job *job, const char *text, size_t bytes)
{
    size_t bracket = bytes && *text == '[';
    uint64_t time_ns = log_prefix_time(text + bracket, bytes - bracket);
    note_time(job, time_ns);
    uint64_t torch_ns = torch_line_time(text, log_job_dated(job), input_modified_ns(job->input));
    if (torch_ns > job->torch_ns)
        job->torch_ns = torch_ns;
    if (torch_ns > job->file_ns)
        job->file_ns = torch_ns;
    if (torch_ns && (!job->first_ns || torch_ns < job->first_ns))
        job->first_ns = torch_ns;
}

int log_job_version(struct log_job *job, struct log_process *process, int version)
{
    struct import_process reported = import_process_new();
    reported.host = process->key.host;
    reported.pid = process->key.pid;
    reported.nccl_version = process->version = version;
    return import_process(job->import, &reported) < 0 ? -1 : 0;
}

/* Warnings that do not touch the job: RAS finds its port taken, a plugin or InfiniBand's library is
 * not installed, advice on the kernel's settings. */
static bool is_harmless(const char *text)
{
    static const char *const harmless[] = {"ras/",
                                           "rasSocket",
                                           "RAS ",
                                           "Could not find: ",
                                           "NET/Plugin",
                                           "Failed to open libibverbs",
                                           "iommu=pt",
                                           "NUMA auto balancing",
                                           "Could not find real path"};
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strstr(text, harmless[i]))
            return true;
    return false;
}

int log_job_warning(struct log_job *job, struct log_process *process, const struct log_line *line)
{
    char text[SAID_BYTES];
    if (!line->message_bytes)
        return 0;
    snprintf(text, sizeof text, "%.*s%s%.*s", (int)line->place_bytes,
             line->place ? line->place : "", line->place_bytes ? ": " : "",
             (int)(line->message_bytes < SAID_BYTES / 2 ? line->message_bytes : SAID_BYTES / 2),
             line->message);
    return import_said(job->import, process->index, is_harmless(text) ? SAID_NOTE : SAID_WARNING,
                       "NCCL WARN", text, line->time_ns);
}

/* The rank that people know a process by is that in its largest communicator, if it is one rank. */
static void learn_rank(struct log_job *job, struct log_process *process,
                       const struct log_comm *comm)
{
    if (job->widest < comm->nranks)
        job->widest = comm->nranks;
    if (comm->nranks < process->widest ||
        (comm->nranks == process->widest && comm->rank == process->rank))
        return;
    bool several = comm->nranks == process->widest;
    process->widest = comm->nranks;
    process->rank = several ? -2 : comm->rank;
    import_process_rank(job->import, process->index, several ? -1 : comm->rank);
}

/* --- communicators --- */

struct log_comm *log_comm_find(struct log_job *job, const struct log_process *process,
                               uint64_t pointer)
{
    struct comm_key key;
    struct log_comm *comm;
    memset(&key, 0, sizeof key);
    key.process = process;
    key.pointer = pointer;
    HASH_FIND(hh, job->comms, &key, sizeof key, comm);
    return comm;
}

void log_comm_forget(struct log_job *job, struct log_comm *comm)
{
    HASH_DEL(job->comms, comm);
    free(comm);
}

struct log_comm *log_comm_new(struct log_job *job, struct log_process *process,
                              const struct log_event *event)
{
    struct log_comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->key.process = process;
    comm->key.pointer = event->comm;
    comm->rank = event->rank;
    comm->nranks = event->nranks;
    comm->device = event->device;
    comm->member = -1;
    comm->comm_id = event->comm_id;
    HASH_ADD(hh, job->comms, key, sizeof comm->key, comm);
    return comm;
}

/* Calls on the process's communicator number `ordinal` of this rank and size. */
int log_comm_hold_back(struct log_job *job, struct log_process *process, struct log_comm *comm)
{
    struct log_unnamed unnamed = {.process = process,
                                  .rank = comm->rank,
                                  .nranks = comm->nranks,
                                  .device = comm->device,
                                  .by_hint = comm->rank < 0};
    for (uint32_t i = 0; i < job->unnamed_count; i++) {
        const struct log_unnamed *other = &job->unnamed[i];
        unnamed.ordinal += other->process == process && other->rank == comm->rank &&
                           other->nranks == comm->nranks;
    }
    comm->is_unnamed = true;
    return log_unnamed_add(job, &unnamed, &comm->unnamed);
}

/* A split is named by its parent, which split of it that is, and the color: all ranks say the same.
 */
static bool name_split(struct log_job *job, const struct log_process *process,
                       struct log_comm *comm, const struct log_event *event)
{
    struct log_comm *parent = log_comm_find(job, process, event->parent);
    if (!parent || parent->is_unnamed)
        return false;
    int ordinal = event->ordinal >= 0 ? event->ordinal : parent->splits++;
    size_t used;
    if (parent->comm_id)
        used = (size_t)snprintf(comm->name, sizeof comm->name, "%016llx/%d.%d",
                                (unsigned long long)parent->comm_id, ordinal, event->color);
    else
        used = (size_t)snprintf(comm->name, sizeof comm->name, "%s/%d.%d", parent->name, ordinal,
                                event->color);
    if (used >=
        sizeof comm->name) { /* splits of splits of splits: what is cut off must still count */
        uint64_t hash = string_id(parent->name, strlen(parent->name));
        snprintf(comm->name, sizeof comm->name, "%016llx/%d.%d", (unsigned long long)hash, ordinal,
                 event->color);
    }
    return true;
}

/* Makes the communicator known to the sink. */
int log_comm_import(struct log_job *job, struct log_process *process, struct log_comm *comm,
                    uint64_t time_ns)
{
    if (comm->is_unnamed || comm->member >= 0)
        return 0;
    struct import_member member = import_member_new();
    member.comm = *comm->name ? comm->name : NULL;
    member.comm_id = comm->comm_id;
    member.rank = comm->rank;
    member.nranks = comm->nranks;
    member.device = comm->device;
    member.time_ns = time_ns;
    comm->member = import_member(job->import, process->index, &member);
    return comm->member < 0 ? -1 : 0;
}

static int init_event(struct log_job *job, struct log_process *process, const struct log_line *line,
                      const struct log_event *event)
{
    struct log_comm *comm = log_comm_find(job, process, event->comm);
    bool complete = event->kind == LOG_EVENT_INIT_COMPLETE;
    if (comm && (comm->used || comm->rank != event->rank || comm->nranks != event->nranks ||
                 (comm->complete && !complete))) {
        log_comm_forget(job, comm); /* its end was not seen */
        comm = NULL;
    }
    if (!comm) {
        comm = log_comm_new(job, process, event);
        if (!comm)
            return -1;
        if (!event->comm_id && !(event->parent && name_split(job, process, comm, event)) &&
            log_comm_hold_back(job, process, comm))
            return -1;
        learn_rank(job, process, comm);
    }
    comm->complete |= complete;
    return complete ? log_comm_import(job, process, comm, line->time_ns) : 0;
}

static int leave_event(struct log_job *job, struct log_process *process,
                       const struct log_line *line, const struct log_event *event)
{
    struct log_comm *comm = log_comm_find(job, process, event->comm);
    bool aborted = event->api == API_ncclCommAbort;
    int result = 0;
    if (!comm || event->kind == LOG_EVENT_LEAVE_START)
        return 0;
    if (comm->is_unnamed) {
        job->unnamed[comm->unnamed].ended = true;
        job->unnamed[comm->unnamed].aborted = aborted;
    } else if (comm->member >= 0) {
        result = import_member_end(job->import, comm->member, aborted, line->time_ns);
    }
    log_comm_forget(job, comm);
    return result;
}

int log_job_event(struct log_job *job, struct log_process *process, const struct log_line *line,
                  const struct log_event *event)
{
    switch (event->kind) {
    case LOG_EVENT_OPERATION:
        return log_calls_operation(job, process, line, event);
    case LOG_EVENT_INIT_START:
    case LOG_EVENT_INIT_COMPLETE:
        return event->comm ? init_event(job, process, line, event) : 0;
    case LOG_EVENT_LEAVE_START:
    case LOG_EVENT_LEAVE_COMPLETE:
        return leave_event(job, process, line, event);
    case LOG_EVENT_GROUP_START:
    case LOG_EVENT_GROUP_END:
        log_calls_group(process, line, event->kind == LOG_EVENT_GROUP_START);
        return 0;
    case LOG_EVENT_CUT:
        job->cut++;
        return 0;
    default:
        return 0;
    }
}

/* --- the end --- */

/* A communicator that was begun and never made. */
static int say_unfinished(struct log_job *job, const struct log_comm *comm)
{
    char text[SAID_BYTES], name[32] = "";
    if (comm->complete || comm->used || comm->is_unnamed)
        return 0;
    if (comm->comm_id)
        snprintf(name, sizeof name, " %016llx", (unsigned long long)comm->comm_id);
    snprintf(text, sizeof text,
             "communicator%s of %d ranks: \"Init START\" without \"Init COMPLETE\": its making "
             "never ended",
             name, comm->nranks);
    return import_said(job->import, comm->key.process->index, SAID_WARNING, "NCCL log", text, 0);
}

void log_job_end_file(struct log_job *job)
{
    const char *path = input_path(job->input);
    job->input = NULL;
    if (job->repeated)
        import_refuse(job->import,
                      "%s: %llu lines of NCCL's stand for several (\"[repeated ...x across "
                      "cluster]\"): Ray left out calls of other "
                      "ranks; run with RAY_DEDUP_LOGS=0",
                      path, (unsigned long long)job->repeated);
    if (job->cut)
        import_refuse(
            job->import,
            "%s: %llu lines of NCCL's had lost their end, or are of NCCL 2.3, and were not taken",
            path, (unsigned long long)job->cut);
    if (job->strangers)
        import_refuse(job->import,
                      "%s: %llu calls on communicators whose making the log does not hold were not "
                      "taken: run with "
                      "NCCL_DEBUG_SUBSYS=INIT,COLL",
                      path, (unsigned long long)job->strangers);
    job->repeated = job->cut = job->strangers = 0;
}

int log_job_end(struct log_job *job)
{
    struct log_comm *comm, *next_comm;
    struct log_process *process, *next_process;
    int result = log_unnamed_end(job) ? -1 : 0;
    for (int i = 0; i < LOG_READERS; i++)
        if (job->state[i] && job->readers[i]->end && job->readers[i]->end(job))
            result = -1;
    for (int i = 0; i < LOG_READERS; i++)
        free(job->state[i]);
    HASH_ITER(hh, job->comms, comm, next_comm) {
        if (say_unfinished(job, comm))
            result = -1;
        log_comm_forget(job, comm);
    }
    HASH_ITER(hh, job->processes, process, next_process) {
        uint32_t lacks = process->has_calls ? 0 : LACKS_GROUP;
        if (find_world_rank(job, process) >= 0)
            import_process_rank(job->import, process->index, find_world_rank(job, process));
        if (!process->has_times)
            lacks |= LACKS_TIMING;
        import_process_lacks(job->import, process->index, lacks);
        if (process->has_times && import_known_until(job->import, process->index, job->last_ns))
            result = -1;
        HASH_DEL(job->processes, process);
        free(process);
    }
    log_files_free(job);
    free(job->path);
    free(job->wrapped);
    return result;
}
