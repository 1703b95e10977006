/* model_stacks.c: where the threads of a process stood when the collector asked, because the job
 * hung. */
#include <string.h>

#include "lib/trace/site.h"
#include "tui/view.h"
#include "tui/width.h"

enum { THREADS_SHOWN = 32 };

static void add_thread(struct source *source, const struct query *query, const struct cursor *row,
                       struct rows *rows)
{
    struct frame frame[SITE_FRAMES_MAX];
    char function[sizeof frame->function + 8], place[sizeof frame->file];
    uint64_t thread = (uint64_t)cursor_number(row, 2);
    const char *name = trace_string(source->trace, query->process, (uint64_t)cursor_number(row, 3));
    row_set(rows_add(rows, (uint64_t)rows->count, 1), 0, TONE_STRONG, "thread %u%s%s%s",
            (unsigned)(thread & 0xffffffffu), name ? " " : "", name ? name : "",
            thread >> 32 & 1 ? " (main)" : "");
    int count = site_frames(source->trace, query->process, (uint64_t)cursor_number(row, 1),
                            cursor_number(row, 4) & 1, frame);
    for (int i = 0; i < count; i++) {
        int left = query->width - width_of(frame_function(&frame[i], function, sizeof function)) -
                   8;
        frame_place(&frame[i], left > 16 ? left : 16, place, sizeof place);
        row_set(rows_add(rows, (uint64_t)rows->count, 2), 0, TONE_PLAIN, "%s  %s", function, place);
    }
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
