/* model_ranks.c: the processes: where they are, how late they come, what they lost. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/moment.h"
#include "lib/base/rankset.h"
#include "lib/finding/finding_culprit.h"
#include "lib/trace/names.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/ranks.h"
#include "tui/view.h"

enum { LATE_EVENTS = 20000, LATE_NUMBERS = 1024, SITE_BYTES = 160, WIDE = 110 };

/* --- how late ranks come --- */

/* Who called an operation when. Numbers of one communicator share a place of the table when they
 * are LATE_NUMBERS apart. */
struct rank_arrival {
    uint64_t comm, number, first_ns, sum;
};

struct rank_lateness {
    struct rank_arrival *arrival;
    struct process_view *process;
};

static struct rank_arrival *arrival_of(struct rank_arrival *table, uint64_t comm, uint64_t number)
{
    return &table[(comm * 0x9e3779b97f4a7c15u + number) % LATE_NUMBERS];
}

/* Twice over the last events: who was first, then how much later the others were. */
static int read_arrivals(struct source *source, struct rank_lateness *late, bool second,
                         struct error *err)
{
    static const char sql[] = "SELECT e.process, e.w0, e.w1, e.time_ns + p.realtime_ns - "
                              "p.monotonic_ns FROM event e JOIN process p ON p.id = e.process "
                              "WHERE e.seq > (SELECT max(seq) - ? FROM event) AND e.phase = 1 "
                              "AND e.api IN (SELECT number FROM api WHERE class = 'collective')";
    const int64_t parameter[] = {LATE_EVENTS};
    struct cursor row = cursor_new(source->trace, sql, parameter, 1);
    int result;
    while ((result = cursor_next(&row, err)) == 1) {
        uint64_t comm = (uint64_t)cursor_number(&row, 1), number = (uint64_t)cursor_number(&row, 2);
        uint64_t time_ns = (uint64_t)cursor_number(&row, 3);
        struct rank_arrival *arrival = arrival_of(late->arrival, comm, number);
        int process = cursor_process(&row, 0);
        bool same = arrival->comm == comm && arrival->number == number;
        if (!second && (!same || time_ns < arrival->first_ns))
            *arrival = (struct rank_arrival){.comm = comm, .number = number, .first_ns = time_ns};
        /* Of a live job more events are there than at the first time, and of an operation whose
         * place another one had meanwhile who called last: both may be before the first. */
        if (second && same && process >= 0 && time_ns >= arrival->first_ns) {
            late->process[process].late_ns += (double)(time_ns - arrival->first_ns);
            late->process[process].late_count++;
        }
    }
    return result;
}

static int measure_lateness(struct source *source, struct process_view *process, struct error *err)
{
    struct rank_lateness late = {calloc(LATE_NUMBERS, sizeof *late.arrival), process};
    if (!late.arrival)
        return error_memory(err, "can't show the ranks");
    int result = read_arrivals(source, &late, false, err);
    if (result == 0)
        result = read_arrivals(source, &late, true, err);
    free(late.arrival);
    return result;
}

/* --- the list --- */

static int read_states(struct source *source, struct process_view *process, struct error *err)
{
    struct cursor row =
        cursor_new(source->trace,
                   "SELECT process, lost_control + lost_bulk, ended, how, value, out_of_memory "
                   "FROM process_state",
                   NULL, 0);
    int result;
    while ((result = cursor_next(&row, err)) == 1) {
        int index = cursor_process(&row, 0);
        if (index < 0)
            continue;
        process[index].lost = (uint64_t)cursor_number(&row, 1);
        process[index].ended = cursor_number(&row, 2);
        process[index].how = (int)cursor_number(&row, 3);
        process[index].value = (int)cursor_number(&row, 4);
        process[index].out_of_memory = (int)cursor_number(&row, 5);
    }
    return result;
}

enum tone ranks_state_text(const struct process_info *info, const struct process_view *process,
                           char *text, size_t bytes)
{
    if (!process->ended) {
        bool is_known = info->pid > 0; /* imports know nothing of processes */
        if (process->is_missing) {
            snprintf(text, bytes, "%s", standing_name(STANDS_MISSING));
            return TONE_ERROR;
        }
        snprintf(text, bytes, "%s", is_known ? "alive" : "-");
        return is_known ? TONE_GOOD : TONE_FAINT;
    }
    if (process->how == END_EXIT)
        snprintf(text, bytes, "exit %d", process->value);
    else if (process->how == END_SIGNAL && process->out_of_memory)
        snprintf(text, bytes, OUT_OF_MEMORY);
    else if (process->how == END_SIGNAL)
        signal_text(process->value, text, bytes);
    else
        snprintf(text, bytes, "ended");
    return process->how == END_EXIT && process->value == 0 ? TONE_FAINT : TONE_ERROR;
}

uint64_t ranks_late_ns(const struct process_view *process)
{
    return process->late_count ? (uint64_t)(process->late_ns / process->late_count) : 0;
}

void ranks_set_cells(struct source *source, const struct query *query,
                     const struct process_info *info, const struct process_view *process,
                     struct rows *rows, struct row *row)
{
    const struct member_state *member = process->member;
    char state[64], site[SITE_BYTES] = "";
    enum tone tone = ranks_state_text(info, process, state, sizeof state);
    if (member) {
        member_site(source, member, query->width >= WIDE, site, sizeof site);
        member_set_place(source, member, rows, row);
    }
    row_set(row, CELL_STATE, tone, "%s%s", state, info->restart > 0 ? " (restarted)" : "");
    if (member)
        row_set(row, CELL_WHERE, TONE_PLAIN, "%s%s%s%s%s", site, *site ? ", " : "", member->where,
                *member->phase ? ", phase " : "", member->phase);
}

void ranks_set_ranks(const struct query *query, const struct process_view *process,
                     const char *ranks, struct row *row)
{
    row_set(row, CELL_RANK, process->is_missing ? TONE_ERROR : TONE_STRONG, "%s%s%s",
            process->is_missing ? signs_of(query)->missing : "", process->is_missing ? " " : "",
            ranks);
}

void ranks_add_process(struct source *source, const struct query *query, int index,
                       const struct process_view *process, struct rows *rows)
{
    const struct process_info *info = trace_process(source->trace, index);
    const struct member_state *member = process->member;
    char late[64] = "", rank[16] = "-";
    struct row *row = rows_add(rows, (uint64_t)index + 1, 0);
    if (process->rank >= 0)
        snprintf(rank, sizeof rank, "%d", process->rank);
    ranks_set_ranks(query, process, rank, row);
    if (info->pid > 0)
        row_set(row, CELL_HOST, TONE_PLAIN, "%s:%d", info->host, info->pid);
    if (member && member->device >= 0)
        row_set(row, CELL_DEVICE, TONE_PLAIN, "%d", member->device);
    if (process->late_count)
        moment_duration(ranks_late_ns(process), late, sizeof late);
    row_set(row, CELL_LATE, TONE_PLAIN, "%s", late);
    if (process->lost)
        row_set(row, CELL_LOST, TONE_WARNING, "%llu", (unsigned long long)process->lost);
    ranks_set_cells(source, query, info, process, rows, row);
    if (row)
        row->target = (struct target){.view = VIEW_RANK, .process = index};
}

/* The ranks for which the others of the worst finding wait. */
static int mark_missing(struct source *source, struct process_view *process, struct error *err)
{
    struct findings findings;
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    const struct finding *worst = findings.faults.count ? findings.faults.fault[0].finding : NULL;
    int side = worst && worst->state == FINDING_OPEN ? finding_culprit(worst) : -1;
    for (int i = 0; side >= 0 && i < trace_process_count(source->trace); i++) {
        int rank = process[i].rank;
        process[i].is_missing = rank >= 0 && rankset_has(&worst->side[side].ranks, rank);
    }
    tui_findings_free(&findings);
    return 0;
}

static struct process_view *load_processes(struct source *source, const struct members *members,
                                           struct error *err)
{
    struct process_view *process =
        calloc((size_t)trace_process_count(source->trace) + 1, sizeof *process);
    int *rank = member_process_ranks(members->member, members->count, source->trace);
    if (!process || !rank) {
        error_memory(err, "can't show the ranks");
        free(process);
        free(rank);
        return NULL;
    }
    for (int i = 0; i < trace_process_count(source->trace); i++)
        process[i].rank = rank[i];
    free(rank);
    for (int i = 0; i < members->count; i++) {
        const struct member_state *member = &members->member[i];
        struct process_view *of = member->process >= 0 ? &process[member->process] : NULL;
        if (of && (!of->member || member->since_ns > of->member->since_ns))
            of->member = member;
    }
    if (read_states(source, process, err) == 0 && measure_lateness(source, process, err) == 0 &&
        mark_missing(source, process, err) == 0)
        return process;
    free(process);
    return NULL;
}

/* Those that others wait for first; by rank, then by start: a restarted rank comes after its first
 * attempt. */
static int by_process_rank(const void *left, const void *right, void *context)
{
    const struct process_view *process = context;
    int a = *(const int *)left, b = *(const int *)right;
    int order = process[b].is_missing - process[a].is_missing;
    if (!order)
        order = process[a].rank - process[b].rank;
    return order ? order : a - b;
}

/* Those in the state of the process that was asked for, all where it is -1. */
static void add_listed(struct source *source, const struct query *query, const int *order, int like,
                       const struct process_view *process, struct rows *rows)
{
    int count = trace_process_count(source->trace);
    uint64_t key = like < 0 ? 0
                            : ranks_fold_key(trace_process(source->trace, like), &process[like]);
    for (int i = 0; i < count; i++)
        if (like < 0 ||
            ranks_fold_key(trace_process(source->trace, order[i]), &process[order[i]]) == key)
            ranks_add_process(source, query, order[i], &process[order[i]], rows);
}

static int add_processes(struct source *source, const struct query *query,
                         const struct process_view *process, struct rows *rows, struct error *err)
{
    int count = trace_process_count(source->trace), result = 0;
    int *order = calloc((size_t)count + 1, sizeof *order);
    if (!order)
        return error_memory(err, "can't show the ranks");
    for (int i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, (size_t)count, sizeof *order, by_process_rank, (void *)process);
    int like = query->number >= 0 && query->number < count ? (int)query->number : -1;
    if (count > query_room(query) && like < 0)
        result = ranks_add_folded(source, query, order, process, rows, err);
    else
        add_listed(source, query, order, like, process, rows);
    free(order);
    return result;
}

/* Ranks without a recorded process, as one row. Only the largest communicator can say which they
 * are: a smaller one has rank numbers of its own. */
static void add_untraced(struct source *source, const struct members *members,
                         const struct process_view *process, struct rows *rows)
{
    const struct tui_comm *largest = NULL;
    struct rankset recorded = {0}, untraced = {0};
    char text[256];
    for (int i = 0; i < members->comms; i++)
        if (!largest || members->comm[i].nranks > largest->nranks)
            largest = &members->comm[i];
    for (int i = 0; i < trace_process_count(source->trace); i++)
        if (process[i].rank >= 0)
            rankset_add(&recorded, process[i].rank);
    for (int i = 0; largest && i < largest->members; i++) {
        const struct member_state *member = &largest->member[i];
        if (member->process < 0 && member->shown_rank >= 0 &&
            !rankset_has(&recorded, member->shown_rank))
            rankset_add(&untraced, member->shown_rank);
    }
    if (rankset_count(&untraced) > 0) {
        struct row *row = rows_add(rows, UINT64_MAX, 0);
        row_set(row, CELL_RANK, TONE_STRONG, "%s", rankset_brief(&untraced, text, sizeof text));
        row_set(row, CELL_STATE, TONE_ERROR, "no trace");
        row_set(row, CELL_WHERE, TONE_PLAIN, "no call of NCCL recorded");
        if (row)
            row->target.view = -1;
    }
    rankset_free(&recorded);
    rankset_free(&untraced);
}

static int model_ranks(struct source *source, struct query *query, struct rows *rows,
                       struct error *err)
{
    struct members members;
    if (members_load(&members, source, err) < 0)
        return -1;
    struct process_view *process = load_processes(source, &members, err);
    rows->empty = "No process called NCCL so far.";
    rows_column(rows, "rank", 24, true);
    rows_column(rows, "host:pid", 24, false);
    rows_column_optional(rows, "gpu", 0, true);
    rows_column_is_minor(rows);
    rows_column(rows, "state", 20, false);
    rows_column_optional(rows, "late by", 0, true);
    rows_column_is_minor(rows);
    rows_column_optional(rows, "lost", 0, true);
    rows_column(rows, "where", 0, false);
    int result = process ? add_processes(source, query, process, rows, err) : -1;
    if (result == 0 && query->number < 0)
        add_untraced(source, &members, process, rows);
    members_free(&members);
    free(process);
    return result;
}

const struct view view_ranks = {
    .name = "Ranks",
    .about = "The processes: where they are, how late they arrive, which records were lost.",
    .load = model_ranks,
    .key = {{"Enter", "the rank: communicators, streams, stacks"}},
};
