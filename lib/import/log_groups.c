/* log_groups.c: what PyTorch said of one process group becomes members, their calls, and a verdict
 * of the watchdog's: who waited for what, and of whom nothing was heard. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/base/text.h"
#include "lib/import/log_messages.h"
#include "lib/import/log_stack.h"
#include "lib/import/log_watched.h"

enum {
    RANKS_BYTES = 256,
    GROUP_BYTES = 96,
    PLACE_BYTES = 320,
    PLACES_MAX = 3,          /* shown: one, and ranks that are elsewhere */
    TIMEOUT_LEAST_MS = 11000 /* a report that follows a timeout, of which no length is known */
};

static const uint64_t millisecond_ns = 1000000, second_ns = 1000000000;

/* One group while it is imported. */
struct watched_group {
    struct log_job *job;
    struct log_watched *const *watched;
    uint32_t count;
    char name[GROUP_BYTES];
    int nranks;        /* -1: not known */
    bool is_default;   /* its ranks are the job's */
    bool is_ambiguous; /* two processes say that they are one rank of it: it is several groups */
};

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

static int world_rank(const struct watched_group *group, const struct log_watched *watched)
{
    if (group->is_default || watched->line.source != FROM_WATCHDOG ||
        (!*watched->line.group && watched->key.speaker.rank < 0))
        return watched->line.rank;
    return watched->key.speaker.rank;
}

static int find_watched_process(const struct watched_group *group,
                                const struct log_watched *watched)
{
    char key[GROUP_BYTES + 64] = "watchdog";
    int rank = world_rank(group, watched);
    const struct log_process *known = rank >= 0 ? log_job_process_of_rank(group->job, rank) : NULL;
    if (known)
        return log_process_index(known);
    struct import_process process = import_process_new();
    if (rank < 0)
        snprintf(key, sizeof key, "rank %d of %s, %x", watched->line.rank, group->name,
                 watched->key.speaker.source);
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

static uint64_t now_of(const struct log_job *job)
{
    return job->torch_ns ? job->torch_ns : job->modified_ns;
}

static uint64_t begun_of(const struct log_job *job, const struct watchdog_line *line)
{
    uint64_t ran_ms = (uint64_t)(line->ran_ms > 0 ? line->ran_ms : job->longest_ms);
    if (line->source == FROM_DESYNC_REPORT && ran_ms < TIMEOUT_LEAST_MS)
        ran_ms = TIMEOUT_LEAST_MS;
    uint64_t ran_ns = ran_ms * millisecond_ns;
    uint64_t said_ns = line->time_ns ? line->time_ns : now_of(job);
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
    uint64_t begun_ns = begun_of(group->job, line);
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
    return import_known_until(import, process, now_of(group->job));
}

/* All members come before the first call: a group whose size is not known has those that were seen
 * by then. */
static int emit_members(const struct watched_group *group, const int *processes, int *members)
{
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < group->count; i++) {
        uint64_t begun_ns = begun_of(group->job, &group->watched[i]->line);
        first_ns = begun_ns < first_ns ? begun_ns : first_ns;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        struct import_member member = import_member_new();
        member.comm = group->name;
        member.rank = group->watched[i]->line.rank;
        member.nranks = group->nranks;
        member.time_ns = first_ns > second_ns ? first_ns - second_ns : first_ns;
        members[i] = import_member(group->job->import, processes[i], &member);
        if (members[i] < 0)
            return -1;
    }
    return 0;
}

/* --- the verdict --- */

/* The timed-out work that most ranks wait in, and the ranks. */
struct timeout {
    const struct watchdog_line *line; /* NULL: nothing timed out */
    struct rankset waiting, silent;
    bool others_elsewhere; /* somebody was heard of that is not in it */
};

static bool waits_in(const struct watchdog_line *line, const struct watchdog_line *work)
{
    bool is_there = line->seq == work->seq && (!*line->op || !strcmp(line->op, work->op));
    return is_there || (line->seq < 0 && line->has_last && line->last_enqueued >= work->seq);
}

static int find_timeout(const struct watched_group *group, struct timeout *timeout)
{
    int most = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct watchdog_line *line = &group->watched[i]->line;
        int waiting = 0;
        for (uint32_t j = 0; j < group->count && line->seq >= 0; j++)
            waiting += waits_in(&group->watched[j]->line, line);
        if (waiting > most || (waiting == most && timeout->line && !*timeout->line->op)) {
            most = waiting;
            timeout->line = line;
        }
    }
    struct rankset heard = {0};
    int result = 0;
    for (uint32_t i = 0; timeout->line && i < group->count; i++) {
        const struct watchdog_line *line = &group->watched[i]->line;
        bool waits = waits_in(line, timeout->line);
        timeout->others_elsewhere |= !waits;
        result |= rankset_add(&heard, line->rank);
        result |= waits ? rankset_add(&timeout->waiting, line->rank) : 0;
    }
    for (int rank = 0; rank < group->nranks && timeout->line; rank++)
        if (!rankset_has(&heard, rank))
            result |= rankset_add(&timeout->silent, rank);
    rankset_free(&heard);
    return result;
}

static void describe_work(const struct watchdog_line *line, const char *group, struct text *what)
{
    text_add(what, "%s", *line->op ? line->op : "an operation");
    if (line->seq >= 0)
        text_add(what, " (SeqNum=%lld", (long long)line->seq);
    if (line->numel_in >= 0)
        text_add(what, ", %lld elements", (long long)line->numel_in);
    text_add(what, "%s of %s", line->seq >= 0 ? ")" : "", group);
    if (line->ran_ms > 0)
        text_add(what, " for %.0f s", (double)line->ran_ms / 1e3);
}

/* Its ranks are the job's, or nothing says that they are not. */
static bool is_job_rank(const struct watched_group *group)
{
    const char *name = group->watched[0]->line.group;
    return group->is_default || !*name || *name == '?';
}

static const char *ranks_word(const struct rankset *ranks)
{
    return rankset_count(ranks) == 1 ? "rank" : "ranks";
}

/* Where in the program the ranks that wait called it, as far as PyTorch printed that. */
static void describe_places(const struct watched_group *group, const struct timeout *timeout,
                            struct text *what)
{
    char place[PLACE_BYTES], first[PLACE_BYTES] = "";
    int places = 0;
    for (uint32_t i = 0; i < group->count && places < PLACES_MAX; i++) {
        const struct log_watched *watched = group->watched[i];
        if (!waits_in(&watched->line, timeout->line) ||
            !log_stack_place(group->job, watched->key.speaker, place, sizeof place) ||
            !strcmp(place, first))
            continue;
        if (!places)
            memcpy(first, place, sizeof first);
        if (places++)
            text_add(what, " (rank %d: %s)", watched->line.rank, place);
        else
            text_add(what, ", called at %s", place);
    }
}

/* What was said, and what to do, on two lines (notice_said). */
static void describe_timeout(const struct watched_group *group, const struct timeout *timeout,
                             bool all_there, struct text *what)
{
    char ranks[RANKS_BYTES];
    rankset_text(&timeout->waiting, ranks, sizeof ranks);
    if (all_there)
        text_add(what, "all %d ranks called ", group->nranks);
    else
        text_add(what, "%s %s%s waited in ", ranks_word(&timeout->waiting), ranks,
                 is_job_rank(group) ? "" : " of the group");
    describe_work(timeout->line, group->name, what);
    describe_places(group, timeout, what);
    if (all_there) {
        text_add(what, ", and none finished it: it is stuck inside NCCL, on the network or on a "
                       "GPU\nNobody is missing. Look for NCCL WARN lines, Xid messages (dmesg), a "
                       "link or NIC that is down, and for a rank whose GPU is busy with a kernel "
                       "or another communicator's operation.");
        return;
    }
    if (rankset_count(&timeout->silent))
        text_add(what, "; of %s %s of its %d ranks nothing is heard", ranks_word(&timeout->silent),
                 rankset_text(&timeout->silent, ranks, sizeof ranks), group->nranks);
    else if (group->is_ambiguous)
        text_add(what, "; several groups have this name here, so that ranks can't be compared");
    else if (timeout->others_elsewhere)
        text_add(what, "; others wait elsewhere");
    else
        text_add(what, "; how many ranks it has is not in the log");
    text_add(what,
             "\nFind out what %s doing then: an exception, a loop that ended earlier, "
             "a slow load or save, a GPU error. Before the next run set "
             "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, and import "
             "all ranks' dumps (docs/import.md).",
             rankset_count(&timeout->silent) ? "the silent ranks were"
                                             : "ranks that are not named were");
}

static int emit_verdict(const struct watched_group *group, const int *processes)
{
    struct timeout timeout = {0};
    struct text what = {0};
    int result = find_timeout(group, &timeout);
    bool all_there = group->nranks > 0 && !group->is_ambiguous &&
                     rankset_count(&timeout.waiting) == group->nranks;
    if (timeout.line && !result)
        describe_timeout(group, &timeout, all_there, &what);
    char *text = timeout.line ? text_take(&what) : NULL;
    if (timeout.line && !text)
        result = -1;
    for (uint32_t i = 0; text && !result && i < group->count; i++)
        if (waits_in(&group->watched[i]->line, timeout.line))
            result = import_said(group->job->import, processes[i],
                                 all_there ? SAID_STUCK : SAID_TIMEOUT, "PyTorch's watchdog", text,
                                 group->watched[i]->line.time_ns);
    free(text);
    rankset_free(&timeout.waiting);
    rankset_free(&timeout.silent);
    return result;
}

/* --- the group --- */

static bool find_ambiguity(const struct watched_group *group)
{
    for (uint32_t i = 1; i < group->count; i++)
        if (group->watched[i]->line.rank == group->watched[i - 1]->line.rank)
            return true;
    return false;
}

int log_group_import(struct log_job *job, struct log_watched *const *watched, uint32_t count)
{
    const char *name = watched[0]->line.group;
    struct watched_group group = {.job = job, .watched = watched, .count = count};
    int *processes = calloc(2 * (size_t)count, sizeof *processes), *members = processes + count;
    int result = processes ? 0 : -1;
    group.is_default = strstr(name, "default_pg") != NULL;
    if (!*name || *name == '?')
        snprintf(group.name, sizeof group.name, "a process group that is not named%s%s",
                 *name ? ", work " : "", *name ? name + 1 : "");
    else
        snprintf(group.name, sizeof group.name, "process group %s", name);
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
        result = emit_verdict(&group, processes);
    free(processes);
    return result;
}
