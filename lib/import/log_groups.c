/* log_groups.c: what PyTorch said of one process group becomes members and their calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/import/log_messages.h"
#include "lib/import/log_verdict.h"

enum {
    TIMEOUT_LEAST_MS = 11000 /* a report that follows a timeout of unknown length */
};

static const uint64_t millisecond_ns = 1000000, second_ns = 1000000000;

/* --- size --- */

/* How many ranks a gather or scatter shows by its two sizes; -1 of other operations. */
static int64_t ranks_of_sizes(const struct watchdog_line *line)
{
    bool gathers = strstr(line->op, "ALLGATHER") != NULL,
         scatters = strstr(line->op, "REDUCE_SCATTER") != NULL;
    int64_t whole = gathers ? line->numel_out : line->numel_in;
    int64_t part = gathers ? line->numel_in : line->numel_out;
    if ((!gathers && !scatters) || part <= 0 || whole <= part || whole % part)
        return -1;
    return whole / part;
}

/* The group's size, as far as something says it: sizes of gathers and scatters that agree, or
 * NCCL's own communicator of all ranks. The highest rank that was heard of is no size. */
static int find_group_size(const struct watched_group *group)
{
    int64_t size = -1;
    int highest = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct watchdog_line *line = &group->watched[i]->line;
        int64_t ranks = ranks_of_sizes(line);
        highest = line->rank > highest ? line->rank : highest;
        if (ranks > 0 && size > 0 && ranks != size)
            return -1;
        size = ranks > 0 ? ranks : size;
    }
    if (size < 0 && group->is_default)
        size = group->job->widest > group->job->world ? group->job->widest : group->job->world;
    return size > highest && size < 1 << 20 ? (int)size : -1;
}

/* --- members and calls --- */

int log_world_rank(const struct watched_group *group, const struct log_watched *watched)
{
    if (group->is_default || watched->line.source != FROM_WATCHDOG ||
        (!*watched->line.group && watched->key.speaker.rank < 0))
        return watched->line.rank;
    return watched->key.speaker.rank;
}

static int find_watched_process(const struct watched_group *group,
                                const struct log_watched *watched)
{
    char key[LOG_GROUP_BYTES + 64] = "watchdog";
    int rank = log_world_rank(group, watched);
    const struct log_process *known = rank >= 0 ? log_job_process_of_rank(group->job, rank) : NULL;
    if (known)
        return log_process_index(known);
    struct import_process process = import_process_new();
    if (rank < 0)
        snprintf(key, sizeof key, "rank %d of %s, %x", watched->line.rank, group->name,
                 watched->key.speaker.source);
    else if (watched->hang > 1)
        snprintf(key, sizeof key, "watchdog, hang %u", watched->hang);
    if (watched->line.source == FROM_FINGERPRINT)
        snprintf(key, sizeof key, "fingerprint");
    process.rank = rank;
    process.key = key;
    process.file = group->job->path;
    process.title = "what PyTorch printed";
    process.lacks = LACKS_MESSAGES;
    if (watched->line.datatype != TYPE_NONE)
        process.lacks &= ~(uint32_t)LACKS_DATATYPE;
    return import_process(group->job->import, &process);
}

/* Of several hangs, each is known as long as somebody spoke of it. */
static uint64_t find_now(const struct watched_group *group)
{
    const struct log_job *job = group->job;
    uint64_t now_ns = 0;
    for (uint32_t i = 0; i < group->count && group->watched[0]->hang; i++)
        if (group->watched[i]->line.time_ns > now_ns)
            now_ns = group->watched[i]->line.time_ns;
    if (!now_ns)
        now_ns = job->torch_ns ? job->torch_ns : job->last_ns;
    return now_ns ? now_ns : LOG_UNDATED_NS;
}

static uint64_t begun_of(const struct watched_group *group, const struct watchdog_line *line)
{
    uint64_t ran_ms = (uint64_t)(line->ran_ms > 0 ? line->ran_ms : group->job->longest_ms);
    bool is_report = line->source == FROM_DESYNC_REPORT || (line->is_signal && !ran_ms);
    if (is_report && ran_ms < TIMEOUT_LEAST_MS)
        ran_ms = TIMEOUT_LEAST_MS;
    uint64_t ran_ns = ran_ms * millisecond_ns;
    uint64_t said_ns = line->time_ns ? line->time_ns : group->now_ns;
    return said_ns > ran_ns ? said_ns - ran_ns : said_ns;
}

/* How many collectives the rank has issued. A rank that said only in which one it waits is taken to
 * be as far as those that wait in the same. */
static int64_t find_issued(const struct watched_group *group, const struct watchdog_line *line)
{
    int64_t issued = line->seq;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct watchdog_line *other = &group->watched[i]->line;
        bool counts = other == line || (!line->has_last && other->seq == line->seq);
        if (counts && other->has_last && other->last_enqueued > issued)
            issued = other->last_enqueued;
    }
    return issued;
}

/* The number of the timed-out collective, then how far the rank is. The collective began when its
 * time began to run; where lines have no time the file's is taken. */
static int emit_watched(const struct watched_group *group, const struct log_watched *watched,
                        int process, int index)
{
    const struct watchdog_line *line = &watched->line;
    int64_t count;
    struct import *import = group->job->import;
    uint64_t begun_ns = begun_of(group, line);
    uint16_t api = watchdog_api(line, &count);
    uint64_t done = line->has_last ? line->last_completed > 0 ? (uint64_t)line->last_completed : 0
                                   : IMPORT_UNKNOWN;
    if (api && line->seq > 0) {
        struct import_call call = import_call_new(index, api);
        call.number = (uint64_t)line->seq - 1;
        call.count = count >= 0 ? (uint64_t)count : IMPORT_UNKNOWN;
        call.datatype = line->datatype;
        call.time_ns = begun_ns;
        call.state = IMPORT_ISSUED;
        call.stack = log_stack_import(group->job, watched->key.speaker, process);
        if (import_call(import, &call))
            return -1;
    }
    int64_t issued = find_issued(group, line);
    if (issued >= 0 && import_reached(import, index, (uint64_t)issued, done, begun_ns))
        return -1;
    return import_known_until(import, process, group->now_ns);
}

/* The ranks that were not heard of can't be named as the job's: then the group's size is left out,
 * since what is missing of it would be shown as ranks of the job. */
static int imported_size(const struct watched_group *group)
{
    bool is_whole = (int)group->count == group->nranks;
    return group->has_own && !is_whole ? -1 : group->nranks;
}

/* All members come before the first call: a group whose size is not known has those that were seen
 * by then. */
static int emit_members(const struct watched_group *group, const int *processes, int *members)
{
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < group->count; i++) {
        uint64_t begun_ns = begun_of(group, &group->watched[i]->line);
        first_ns = begun_ns < first_ns ? begun_ns : first_ns;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        struct import_member member = import_member_new();
        member.comm = group->name;
        member.rank = group->watched[i]->line.rank;
        member.nranks = imported_size(group);
        member.time_ns = first_ns > second_ns ? first_ns - second_ns : first_ns;
        members[i] = import_member(group->job->import, processes[i], &member);
        if (members[i] < 0)
            return -1;
    }
    return 0;
}

/* --- the group --- */

/* One rank twice; or the job's ranks in another order than the group's, which PyTorch sorts. */
static bool find_ambiguity(const struct watched_group *group)
{
    int last = -1;
    for (uint32_t i = 0; i < group->count; i++) {
        int rank = group->has_own ? log_world_rank(group, group->watched[i]) : -1;
        bool is_same = i && group->watched[i]->line.rank == group->watched[i - 1]->line.rank;
        if (is_same || (rank >= 0 && rank < last))
            return true;
        last = rank >= 0 ? rank : last;
    }
    return false;
}

/* Whether a rank has another number in the job. */
static bool find_own_numbers(const struct watched_group *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        int rank = log_world_rank(group, group->watched[i]);
        if (rank >= 0 && rank != group->watched[i]->line.rank)
            return true;
    }
    return false;
}

int log_group_import(struct log_job *job, struct log_watched *const *watched, uint32_t count,
                     bool has_timeout)
{
    const char *name = watched[0]->line.group;
    struct watched_group group = {.job = job, .watched = watched, .count = count};
    int *processes = calloc(2 * (size_t)count, sizeof *processes), *members = processes + count;
    int result = processes ? 0 : -1;
    group.now_ns = find_now(&group);
    group.is_default = strstr(name, "default_pg") != NULL;
    if (!*name || *name == '?')
        snprintf(group.name, sizeof group.name, "a process group that is not named%s%s",
                 *name ? ", work " : "", *name ? name + 1 : "");
    else
        snprintf(group.name, sizeof group.name, "process group %s", name);
    size_t length = strlen(group.name);
    if (watched[0]->hang)
        snprintf(group.name + length, sizeof group.name - length, " (hang %u)", watched[0]->hang);
    group.has_own = find_own_numbers(&group);
    group.is_ambiguous = find_ambiguity(&group);
    group.nranks = group.is_ambiguous ? -1 : find_group_size(&group);
    for (uint32_t i = 0; i < count && !result; i++) {
        processes[i] = find_watched_process(&group, watched[i]);
        result = processes[i] < 0 ? -1 : 0;
    }
    if (!result && !group.is_ambiguous)
        result = emit_members(&group, processes, members);
    for (uint32_t i = 0; i < count && !result && !group.is_ambiguous; i++)
        result = emit_watched(&group, watched[i], processes[i], members[i]);
    if (!result && watched[0]->line.source != FROM_FINGERPRINT)
        result = log_verdict_import(&group, processes, has_timeout);
    free(processes);
    return result;
}
