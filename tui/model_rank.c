/* model_rank.c: one process: its communicators, where it is, what it waits for, its streams, its
 * threads' stacks. */
#include <inttypes.h>
#include <stdlib.h>

#include "lib/base/rankset.h"
#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "lib/trace/site.h"
#include "tui/members.h"
#include "tui/view.h"

static void add_head(struct rows *rows, const char *text)
{
    row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, TONE_STRONG, "%s", text);
}

static struct row *add_rank_item(struct rows *rows)
{
    return rows_add(rows, (uint64_t)rows->count, 1);
}

static void add_frames(struct source *source, const struct query *query, int process,
                       uint64_t stack, bool is_address, struct rows *rows)
{
    struct frame frame[SITE_FRAMES_MAX];
    int count = site_frames(source->trace, process, stack, is_address, frame);
    rows_add_frames(rows, query->width, 1, frame, count);
}

static void add_members(struct source *source, const struct query *query,
                        const struct members *members, struct rows *rows)
{
    const struct member_state *latest = NULL;
    char issued[LAST_NUMBER_BYTES], done[LAST_NUMBER_BYTES];
    add_head(rows, "Communicators");
    for (int i = 0; i < members->count; i++) {
        const struct member_state *member = &members->member[i];
        if (member->process != query->process)
            continue;
        latest = !latest || member->since_ns > latest->since_ns ? member : latest;
        struct row *row = add_rank_item(rows);
        row_set(row, 0, member->standing <= STANDS_BEHIND ? TONE_ERROR : TONE_PLAIN,
                "%s rank %d of %d: %s, issued %s, done %s, last %s", member->label, member->rank,
                member->nranks, standing_name(member->standing),
                last_number_text(member->issued, issued), last_number_text(member->done, done),
                *member->last_call ? member->last_call : "none");
        if (row)
            row->target = (struct target){.view = VIEW_SEQUENCE,
                                          .comm = member->comm,
                                          .process = -1,
                                          .number = member->issued ? member->issued - 1 : 0};
    }
    if (!latest)
        return;
    add_head(rows, latest->ended ? "Where it was" : "Where it is");
    row_set(add_rank_item(rows), 0, TONE_PLAIN, "%s", latest->where);
    add_frames(source, query, query->process, latest->stack, latest->stack_is_address, rows);
}

/* The lines of the tree of waits that are of this process: what it waits in, and who waits for it.
 */
static int add_waits(struct source *source, const struct query *query, struct rows *rows,
                     struct error *err)
{
    static const char sql[] = "SELECT process, text, in_cycle, since_ns, depth FROM wait_state "
                              "WHERE again = 0 ORDER BY id";
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    char duration[64];
    int shown = 0, result;
    while ((result = cursor_next(&row, err)) == 1) {
        uint64_t since_ns = (uint64_t)cursor_number(&row, 3);
        if (cursor_process(&row, 0) != query->process)
            continue;
        if (shown++ == 0)
            add_head(rows, "Who waits for whom (key 5 shows all ranks)");
        bool lasts = since_ns && source->now_ns > since_ns;
        struct row *line = add_rank_item(rows);
        row_set(line, 0, cursor_number(&row, 2) ? TONE_ERROR : TONE_PLAIN, "%s%s%s%s",
                cursor_text(&row, 1), lasts ? ", for " : "",
                lasts ? moment_duration(source->now_ns - since_ns, duration, sizeof duration) : "",
                cursor_number(&row, 2) ? " (a cycle)" : "");
        if (line)
            line->target = (struct target){.view = VIEW_WAITS, .process = -1};
    }
    return result;
}

/* -1: the trace has none. */
static int process_of_rank(const int *ranks, int processes, int64_t rank)
{
    int process = processes - 1;
    while (process >= 0 && ranks[process] != rank)
        process--;
    return process;
}

static int add_rank_page(struct source *source, struct query *query, const struct members *members,
                         int rank, struct rows *rows, struct error *err)
{
    const struct process_info *info = trace_process(source->trace, query->process);
    if (rank >= 0)
        rows_line(rows, TONE_STRONG, "rank %d, process %d on %s", rank, info->pid, info->host);
    else
        rows_line(rows, TONE_STRONG, "process %d on %s", info->pid, info->host);
    rows_line(rows, TONE_FAINT, "%s", info->command);
    rows_column(rows, "", 0, false);
    add_members(source, query, members, rows);
    int result = add_waits(source, query, rows, err);
    if (result == 0)
        result = model_rank_streams(source, query, members, rows, err);
    return result < 0 ? result : model_rank_stacks(source, query, rows, err);
}

static void add_no_rank(const int *ranks, int processes, int64_t wanted, struct rows *rows)
{
    struct rankset all = {0};
    char text[256];
    for (int i = 0; i < processes; i++)
        if (ranks[i] >= 0 && rankset_add(&all, ranks[i]))
            rows->failed = true;
    rows_line(rows, TONE_WARNING, "No process of this trace is rank %" PRId64 "; there %s %s.",
              wanted, rankset_count(&all) == 1 ? "is" : "are",
              rankset_words(&all, text, sizeof text));
    rankset_free(&all);
}

static int model_rank(struct source *source, struct query *query, struct rows *rows,
                      struct error *err)
{
    struct members members;
    int processes = trace_process_count(source->trace), result = 0;
    rows->empty = query->process < 0 ? "" : "This process is not there.";
    rows->tree = true;
    if (members_load(&members, source, err) < 0)
        return -1;
    int *ranks = member_process_ranks(members.member, members.count, source->trace);
    if (!ranks)
        result = error_set(err, OUT_OF_MEMORY);
    else if (query->process < 0)
        query->process = process_of_rank(ranks, processes, query->number);
    if (ranks && query->process >= 0 && query->process < processes)
        result = add_rank_page(source, query, &members, ranks[query->process], rows, err);
    else if (ranks && query->process < 0)
        add_no_rank(ranks, processes, query->number, rows);
    free(ranks);
    members_free(&members);
    return result;
}

const struct view view_rank = {
    .name = "Rank",
    .about = "One process: its communicators, its streams, its stacks.",
    .load = model_rank,
    .key = {{"t", "its stacks as they are now"}, {"Esc", "back"}},
};
