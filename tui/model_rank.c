/* model_rank.c: one process: its communicators, where it is, what it waits for, its streams, its
 * threads' stacks. */
#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "lib/trace/site.h"
#include "tui/members.h"
#include "tui/view.h"
#include "tui/width.h"

static void add_head(struct rows *rows, const char *text)
{
    row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, TONE_STRONG, "%s", text);
}

static struct row *add_item(struct rows *rows)
{
    return rows_add(rows, (uint64_t)rows->count, 1);
}

static void add_frames(struct source *source, const struct query *query, int process,
                       uint64_t stack, bool is_address, struct rows *rows)
{
    struct frame frame[SITE_FRAMES_MAX];
    char function[sizeof frame->function + 8], place[sizeof frame->file];
    int count = site_frames(source->trace, process, stack, is_address, frame);
    for (int i = 0; i < count; i++) {
        int width = width_of(frame_function(&frame[i], function, sizeof function));
        frame_place(&frame[i], query->width - width - 8 > 16 ? query->width - width - 8 : 16, place,
                    sizeof place);
        row_set(add_item(rows), 0, i ? TONE_PLAIN : TONE_STRONG, "%s  %s", function, place);
    }
}

static void add_members(struct source *source, const struct query *query,
                        const struct members *members, struct rows *rows)
{
    const struct member_state *latest = NULL;
    add_head(rows, "Communicators");
    for (int i = 0; i < members->count; i++) {
        const struct member_state *member = &members->member[i];
        if (member->process != query->process)
            continue;
        latest = !latest || member->since_ns > latest->since_ns ? member : latest;
        struct row *row = add_item(rows);
        row_set(row, 0, member->standing <= STANDS_BEHIND ? TONE_ERROR : TONE_PLAIN,
                "%s rank %d of %d: %s, %llu called, %llu done, last %s", member->label,
                member->rank, member->nranks, standing_name(member->standing),
                (unsigned long long)member->issued, (unsigned long long)member->done,
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
    row_set(add_item(rows), 0, TONE_PLAIN, "%s", latest->where);
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
            add_head(rows, "In the tree of waits (5)");
        bool lasts = since_ns && source->now_ns > since_ns;
        struct row *line = add_item(rows);
        row_set(line, 0, cursor_number(&row, 2) ? TONE_ERROR : TONE_PLAIN, "%s%s%s%s",
                cursor_text(&row, 1), lasts ? ", for " : "",
                lasts ? moment_duration(source->now_ns - since_ns, duration, sizeof duration) : "",
                cursor_number(&row, 2) ? " (a cycle)" : "");
        if (line)
            line->target = (struct target){.view = VIEW_WAITS, .process = -1};
    }
    return result;
}

static int model_rank(struct source *source, struct query *query, struct rows *rows,
                      struct error *err)
{
    struct members members;
    rows->empty = "This process is not there.";
    rows->tree = true;
    if (query->process < 0 || query->process >= trace_process_count(source->trace))
        return 0;
    if (members_load(&members, source, err) < 0)
        return -1;
    const struct process_info *info = trace_process(source->trace, query->process);
    rows_line(rows, TONE_STRONG, "rank %d, process %d on %s", info->rank, info->pid, info->host);
    rows_line(rows, TONE_FAINT, "%s", info->command);
    rows_column(rows, "", 0, false);
    add_members(source, query, &members, rows);
    int result = add_waits(source, query, rows, err);
    if (result == 0)
        result = model_rank_streams(source, query, &members, rows, err);
    members_free(&members);
    return result < 0 ? result : model_rank_stacks(source, query, rows, err);
}

const struct view view_rank = {
    .name = "Rank",
    .about = "One process: its communicators, its streams, its stacks.",
    .load = model_rank,
    .key = {{"Esc", "back"}},
};
