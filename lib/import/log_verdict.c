/* log_verdict.c: the verdict of PyTorch's watchdog on one process group: who waited for what, which
 * ranks were silent, and why as far as the log says it. */
#include "lib/import/log_verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/base/text.h"
#include "lib/import/log_messages.h"

enum {
    RANKS_BYTES = 256,
    PLACE_BYTES = 320,
    PLACES_MAX = 3 /* shown: one, and ranks that are elsewhere */
};

/* The timed-out work that most ranks wait in, and the ranks. */
struct timeout {
    const struct watchdog_line *line; /* NULL: nothing timed out */
    struct rankset waiting, silent;
    struct rankset behind; /* heard of, and known not to have called it */
    struct rankset failed; /* of whose silence the log says why */
    bool others_elsewhere; /* somebody was heard of that is not in it */
};

static bool waits_in(const struct watchdog_line *line, const struct watchdog_line *work)
{
    bool is_there = line->seq == work->seq && (!*line->op || !strcmp(line->op, work->op));
    return is_there || (line->seq < 0 && line->has_last && line->last_enqueued >= work->seq);
}

/* Its ranks are the job's, or nothing says that they are not. */
static bool is_job_rank(const struct watched_group *group)
{
    const char *name = group->watched[0]->line.group;
    return group->is_default || !*name || *name == '?';
}

/* The exception that ended a rank before the time-out was reported; NULL. */
static const char *find_exception(const struct watched_group *group, const struct timeout *timeout,
                                  int rank)
{
    uint64_t until_ns = timeout->line->time_ns;
    uint64_t before_ns = LOG_APART_NS;
    if (timeout->line->ran_ms > 0)
        before_ns += (uint64_t)timeout->line->ran_ms * 1000000;
    return !group->has_own && is_job_rank(group)
               ? log_messages_exception(group->job, rank,
                                        until_ns > before_ns ? until_ns - before_ns : 0, until_ns)
               : NULL;
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
        bool is_behind = !waits && line->has_last && line->last_enqueued < timeout->line->seq;
        result |= is_behind ? rankset_add(&timeout->behind, line->rank) : 0;
    }
    for (int rank = 0; rank < group->nranks && timeout->line; rank++)
        if (!rankset_has(&heard, rank))
            result |= rankset_add(
                find_exception(group, timeout, rank) ? &timeout->failed : &timeout->silent, rank);
    rankset_free(&heard);
    return result;
}

static void describe_work(const struct watchdog_line *line, const char *group, struct text *what)
{
    text_add(what, "%s", *line->op ? line->op : "an operation");
    if (line->seq >= 0)
        text_add(what, " (SeqNum=%lld", (long long)line->seq);
    if (line->numel_out >= 0 && line->numel_out != line->numel_in)
        text_add(what, ", %lld -> %lld elements", (long long)line->numel_in,
                 (long long)line->numel_out);
    else if (line->numel_in >= 0)
        text_add(what, ", %lld elements", (long long)line->numel_in);
    text_add(what, "%s of %s", line->seq >= 0 ? ")" : "", group);
    if (line->ran_ms > 0)
        text_add(what, " for %.0f s", (double)line->ran_ms / 1e3);
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

static const char *missing_word(const struct timeout *timeout)
{
    if (rankset_count(&timeout->behind) || rankset_count(&timeout->failed))
        return "the ranks that did not call it were";
    return rankset_count(&timeout->silent) ? "the silent ranks were"
                                           : "the other ranks of the group were";
}

/* Why ranks are silent, of the first of them. */
static void describe_failed(const struct watched_group *group, const struct timeout *timeout,
                            struct text *what)
{
    char ranks[RANKS_BYTES];
    int first = rankset_next(&timeout->failed, 0);
    if (first >= 0)
        text_add(what, "; %s did not come: %s",
                 rankset_words(&timeout->failed, ranks, sizeof ranks),
                 find_exception(group, timeout, first));
}

/* Who waits: the job's ranks, and what numbers they have in the group. */
static void describe_waiting(const struct watched_group *group, const struct timeout *timeout,
                             struct text *what)
{
    char ranks[RANKS_BYTES], own[RANKS_BYTES];
    struct rankset of_job = {0};
    bool all_known = group->has_own;
    for (uint32_t i = 0; i < group->count && all_known; i++) {
        int rank = log_world_rank(group, group->watched[i]);
        if (waits_in(&group->watched[i]->line, timeout->line))
            all_known = rank >= 0 && !rankset_add(&of_job, rank);
    }
    rankset_words(&timeout->waiting, own, sizeof own);
    if (all_known)
        text_add(what, "%s (%s of the group) waited in ",
                 rankset_words(&of_job, ranks, sizeof ranks), own);
    else
        text_add(what, "%s%s waited in ", own, is_job_rank(group) ? "" : " of the group");
    rankset_free(&of_job);
}

/* What was said, and what to do, on two lines (notice_said). */
static void describe_timeout(const struct watched_group *group, const struct timeout *timeout,
                             bool all_there, struct text *what)
{
    char ranks[RANKS_BYTES];
    if (all_there)
        text_add(what, "all %d ranks called ", group->nranks);
    else
        describe_waiting(group, timeout, what);
    describe_work(timeout->line, group->name, what);
    describe_places(group, timeout, what);
    if (all_there) {
        text_add(what, ", and none finished it: it is stuck inside NCCL, on the network or on a "
                       "GPU\nNobody is missing. Look for NCCL WARN lines, Xid messages (dmesg), a "
                       "link or NIC that is down, and for a rank whose GPU is busy with a kernel "
                       "or another communicator's operation.");
        return;
    }
    if (rankset_count(&timeout->behind))
        text_add(what, "; %s did not call it",
                 rankset_words(&timeout->behind, ranks, sizeof ranks));
    describe_failed(group, timeout, what);
    if (rankset_count(&timeout->silent))
        text_add(what, "; of %s of its %d ranks nothing is heard%s",
                 rankset_words(&timeout->silent, ranks, sizeof ranks), group->nranks,
                 group->has_own ? " (these are the group's numbers, not the job's)" : "");
    else if (group->is_ambiguous)
        text_add(what, "; several groups have this name here, so that ranks can't be compared");
    else if (timeout->others_elsewhere && !rankset_count(&timeout->behind))
        text_add(what, "; others wait elsewhere");
    else if (!timeout->others_elsewhere && !rankset_count(&timeout->failed))
        text_add(what, "; how many ranks it has is not in the log");
    if (rankset_count(&timeout->failed) && !rankset_count(&timeout->silent))
        text_add(what, "\nThis only follows from it: let an exception end the whole job.");
    else
        text_add(what,
                 "\nFind out what %s doing then: an exception, a loop that ended earlier, "
                 "a slow load or save, a GPU error. Before the next run set "
                 "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1, and import "
                 "all ranks' dumps (docs/import.md).",
                 missing_word(timeout));
}

/* --- dump signals --- */

/* Who found a timeout that no line names, and who had nothing open in the group then. */
static int describe_signals(const struct watched_group *group, struct text *what)
{
    struct rankset found = {0}, idle = {0};
    char ranks[RANKS_BYTES];
    int64_t last = -1;
    int result = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct watchdog_line *line = &group->watched[i]->line;
        int rank = log_world_rank(group, group->watched[i]),
            by = line->found_here ? rank : line->found_by;
        if (by >= 0)
            result |= rankset_add(&found, by);
        if (!line->has_last || line->last_enqueued != line->last_completed)
            continue;
        result |= rank >= 0 ? rankset_add(&idle, rank) : 0;
        last = line->last_completed > last ? line->last_completed : last;
    }
    text_add(what, "a collective timed out");
    if (rankset_count(&found))
        text_add(what, ": the watchdog of %s found it first",
                 rankset_words(&found, ranks, sizeof ranks));
    if (rankset_count(&idle))
        text_add(what,
                 "; %s %s nothing open in %s (%lld of %lld done): they have not called what is "
                 "waited for, or that is in another group",
                 rankset_words(&idle, ranks, sizeof ranks),
                 rankset_count(&idle) == 1 ? "has" : "have", group->name, (long long)last,
                 (long long)last);
    text_add(what,
             "\nWhich operation it is stands in the output of the rank that found it, and in "
             "the Flight Recorder dumps that all wrote then (TORCH_NCCL_TRACE_BUFFER_SIZE=2000 "
             "up to PyTorch 2.10): import them.");
    rankset_free(&found);
    rankset_free(&idle);
    return result;
}

/* Nobody's operation is known in the group. */
static int emit_signals(const struct watched_group *group, const int *processes, bool has_timeout)
{
    struct text what = {0};
    bool is_signal = false;
    for (uint32_t i = 0; i < group->count; i++)
        is_signal |= group->watched[i]->line.is_signal;
    if (!is_signal)
        return 0;
    int result = describe_signals(group, &what);
    char *text = text_take(&what);
    result |= text ? 0 : -1;
    for (uint32_t i = 0; i < group->count && !result; i++)
        result = import_said(group->job->import, processes[i],
                             has_timeout ? SAID_NOTE : SAID_TIMEOUT, "PyTorch's watchdog", text,
                             group->watched[i]->line.time_ns);
    free(text);
    return result;
}

int log_verdict_import(const struct watched_group *group, const int *processes, bool has_timeout)
{
    struct timeout timeout = {0};
    struct text what = {0};
    int result = find_timeout(group, &timeout);
    if (!timeout.line)
        return result ? -1 : emit_signals(group, processes, has_timeout);
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
    rankset_free(&timeout.behind);
    rankset_free(&timeout.failed);
    return result;
}
