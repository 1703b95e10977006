/* model_stacks.c: where the threads of a process stood when the collector asked, because the job
 * hung; and where they stand now. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/path.h"
#include "lib/base/process_file.h"
#include "lib/live/live_groups.h"
#include "lib/trace/site.h"
#include "lib/trace/symbols.h"
#include "tui/view.h"
#include "tui/width.h"

enum { THREADS_SHOWN = 32, PLACE_LEAST = 16, PLACE_MARGIN = 8 };

void rows_set_frame(struct rows *rows, struct row *row, const struct frame *frame)
{
    char place[sizeof frame->file + 16], file[sizeof frame->file];
    snprintf(file, sizeof file, "%s", frame->file);
    path_normalize(file);
    snprintf(place, sizeof place, "%s:%d", file, frame->line);
    if (row && *file && frame->line > 0)
        rows_set_place(rows, row, place);
}

void rows_add_frames(struct rows *rows, int width, int depth, const struct frame *frame, int count)
{
    char function[sizeof frame->function + 8], place[sizeof frame->file];
    for (int i = 0; i < count; i++) {
        int left = width - width_of(frame_function(&frame[i], function, sizeof function)) -
                   PLACE_MARGIN;
        frame_place(&frame[i], left > PLACE_LEAST ? left : PLACE_LEAST, place, sizeof place);
        struct row *row = rows_add(rows, (uint64_t)rows->count, depth);
        row_set(row, 0, i ? TONE_PLAIN : TONE_STRONG, "%s  %s", function, place);
        rows_set_frame(rows, row, &frame[i]);
    }
}

static void add_thread(struct source *source, const struct query *query, const struct cursor *row,
                       struct rows *rows)
{
    struct frame frame[SITE_FRAMES_MAX];
    uint64_t thread = (uint64_t)cursor_number(row, 2);
    const char *name = trace_string(source->trace, query->process, (uint64_t)cursor_number(row, 3));
    row_set(rows_add(rows, (uint64_t)rows->count, 1), 0, TONE_STRONG, "thread %u%s%s%s",
            (unsigned)(thread & 0xffffffffu), name ? " " : "", name ? name : "",
            thread >> 32 & 1 ? " (main)" : "");
    int count = site_frames(source->trace, query->process, (uint64_t)cursor_number(row, 1),
                            cursor_number(row, 4) & 1, frame);
    rows_add_frames(rows, query->width, 2, frame, count);
}

int model_rank_stacks(struct source *source, struct query *query, struct rows *rows,
                      struct error *err)
{
    /* The literal 251 (notice_thread_stack) lets SQLite use the index over these rows alone. */
    static const char sql[] = "SELECT process, stack, w1, w2, flags FROM event e WHERE api = 251 "
                              "AND w0 = (SELECT max(w0) FROM event x WHERE x.api = 251 AND "
                              "x.process = e.process) ORDER BY process, seq";
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    int shown = 0, result;
    while ((result = cursor_next(&row, err)) == 1) {
        if (cursor_process(&row, 0) != query->process || shown == THREADS_SHOWN)
            continue;
        if (shown++ == 0)
            row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, TONE_STRONG,
                    "Threads when the hang was noticed");
        add_thread(source, query, &row, rows);
    }
    return result;
}

/* --- as they are now --- */

/* Whether a process of the trace is one that runs here: not a later one with its number. */
static bool runs_here(const struct process_info *info)
{
    char boot_id[sizeof info->boot_id] = "";
    boot_id_read(boot_id, sizeof boot_id);
    return !strcmp(boot_id, info->boot_id) && info->start_ticks &&
           process_start_ticks(info->pid) == info->start_ticks;
}

/* Reads them once for each time that they were asked for. */
static int stand_still(struct source *source, const struct query *query,
                       const struct process_info *info, struct error *err)
{
    if (source->stood && source->stood_ns == query->begin_ns && source->stood->pid == info->pid)
        return 0;
    source_forget_stood(source);
    struct live_process *process = calloc(1, sizeof *process);
    if (!process)
        return error_set(err, OUT_OF_MEMORY);
    struct symbols *symbols = symbols_new(); /* NULL: only Python's frames */
    int result = live_read(process, info->pid, symbols, err);
    symbols_free(symbols);
    if (result < 0) {
        free(process);
        return -1;
    }
    source->stood = process;
    source->stood_ns = query->begin_ns;
    return 0;
}

static void add_live_group(const struct query *query, const struct live_group *group,
                           struct rows *rows)
{
    const struct live_thread *thread = group->first;
    struct row *row = rows_add(rows, (uint64_t)rows->count, 0);
    const char *in = thread->state == 'R' ? ", running" : "";
    if (group->called[0])
        in = ", in ";
    if (group->threads == 1)
        row_set(row, 0, TONE_STRONG, "thread %u %s%s%s%s", thread->id, thread->name,
                group->is_main ? " (main)" : "", in, group->called);
    else
        row_set(row, 0, TONE_STRONG, "%d threads %s%s%s", group->threads, thread->name, in,
                group->called);
    rows_add_frames(rows, query->width, 1, group->frame, group->frames);
}

static int model_stacks(struct source *source, struct query *query, struct rows *rows,
                        struct error *err)
{
    struct live_group *groups;
    rows->empty = "This process is not there.";
    rows->tree = true;
    if (query->process < 0 || query->process >= trace_process_count(source->trace))
        return 0;
    const struct process_info *info = trace_process(source->trace, query->process);
    rows->empty = "It does not run on this host, or it has exited.";
    if (!runs_here(info))
        return 0;
    if (stand_still(source, query, info, err) < 0)
        return -1;
    int count = live_groups(source->stood, 1, false, &groups);
    if (count < 0)
        return error_set(err, OUT_OF_MEMORY);
    rows_line(rows, TONE_STRONG, "process %d on %s, as it stood when t was pressed", info->pid,
              info->host);
    rows_column(rows, "", 0, false);
    for (int i = 0; i < count; i++)
        add_live_group(query, &groups[i], rows);
    live_groups_free(groups, count);
    return 0;
}

const struct view view_stacks = {
    .name = "Stacks",
    .about = "Where the threads of one process stand now; each was stopped for some milliseconds.",
    .load = model_stacks,
    .key = {{"t", "read them again"}, {"o", "open the frame's line in $EDITOR"}, {"Esc", "back"}},
};
