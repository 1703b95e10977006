/* model_waits.c: who waits for whom (table wait_state), as an indented tree; what is on a cycle or
 * can never go on is marked. */
#include <stdio.h>
#include <string.h>

#include "lib/base/moment.h"
#include "lib/trace/site.h"
#include "tui/operations.h"
#include "tui/view.h"
#include "tui/width.h"

enum { CELL_WHO, CELL_SINCE, CELL_SITE };
enum {
    WIDE = 110,
    WIDER = 160,
    NARROW = 60,
    PLACE_WIDTH = 24,
    FUNCTION_WIDTH = 26,
    SINCE_WIDTH = 12,
    TEXT_BYTES = 1024
};

/* What places and times leave of the width. */
static int tree_width(const struct query *query)
{
    int rest = query->width >= WIDE ? PLACE_WIDTH + ROWS_GAP : 0;
    if (query->width >= WIDER)
        rest += FUNCTION_WIDTH;
    return query->width >= NARROW ? query->width - SINCE_WIDTH - rest : query->width;
}

/* Words that anyone knows, then arguments and sizes, then what the next row says as well go where
 * there is no room for them. */
static const char *fit_wait(const struct query *query, int depth, const char *marks, char *text)
{
    int room = tree_width(query) - depth * ROWS_INDENT - width_of(marks);
    if (query->width < WIDE || width_of(text) > room)
        operation_shorten(text);
    if (width_of(text) > room)
        operation_shorten_more(text);
    char *waits = strstr(text, ", waiting for "); /* the next row says for what */
    if (waits && width_of(text) > room)
        *waits = '\0';
    return text;
}

/* Without much room there are no places, and calls are shortened. With less the tree is the last
 * column, which can be scrolled sideways. */
static void add_columns(const struct query *query, struct rows *rows)
{
    rows_column(rows, "who waits for whom", tree_width(query), false);
    if (query->width >= NARROW)
        rows_column(rows, "for", 0, true);
    if (query->width >= WIDE)
        rows_column(rows, "at", 0, false);
}

static int model_waits(struct source *source, struct query *query, struct rows *rows,
                       struct error *err)
{
    static const char sql[] = "SELECT id, depth, text, process, in_cycle, stuck, since_ns, stack, "
                              "stack_is_address, again FROM wait_state "
                              "ORDER BY id";
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    char duration[64], function[320], place[256], text[TEXT_BYTES];
    int result;
    rows->tree = true;
    rows->empty = source->live ? "No rank waits for another."
                               : "No rank waited for another when the trace ended.";
    if (!source->live && source_is_imported(source))
        rows->empty = "What was imported does not show that a rank waits for another.";
    bool wide = query->width >= WIDE;
    add_columns(query, rows);
    while ((result = cursor_next(&row, err)) == 1) {
        struct frame frame[SITE_FRAMES_MAX];
        int process = cursor_process(&row, 3);
        bool cycle = cursor_number(&row, 4), stuck = cursor_number(&row, 5);
        uint64_t since_ns = (uint64_t)cursor_number(&row, 6);
        snprintf(text, sizeof text, "%s", cursor_text(&row, 2));
        struct row *line = rows_add(rows,
                                    (uint64_t)row.database << 32 | (uint64_t)cursor_number(&row, 0),
                                    (int)cursor_number(&row, 1));
        enum tone tone = stuck ? TONE_WARNING : TONE_PLAIN;
        const char *mark = "";
        char marks[32];
        if (cycle) {
            tone = TONE_ERROR;
            mark = query->ascii ? "(cycle) " : "↻ ";
        }
        snprintf(marks, sizeof marks, "%s%s", mark, cursor_number(&row, 9) ? "(as above) " : "");
        row_set(line, CELL_WHO, tone, "%s%s", marks,
                fit_wait(query, (int)cursor_number(&row, 1), marks, text));
        if (since_ns && source->now_ns > since_ns)
            row_set(line, CELL_SINCE, TONE_PLAIN, "%s",
                    moment_duration(source->now_ns - since_ns, duration, sizeof duration));
        int frames = site_frames(source->trace, process, (uint64_t)cursor_number(&row, 7),
                                 cursor_number(&row, 8), frame);
        int shown = site_shown_frame(frame, frames);
        if (shown >= 0)
            rows_set_frame(rows, line, &frame[shown]);
        if (shown >= 0 && wide)
            row_set(line, CELL_SITE, TONE_FAINT, "%s %s",
                    frame_place(&frame[shown], PLACE_WIDTH, place, sizeof place),
                    query->width >= WIDER ? frame_function(&frame[shown], function, sizeof function)
                                          : "");
        if (line && process >= 0)
            line->target = (struct target){.view = VIEW_RANK, .process = process};
    }
    return result;
}

const struct view view_waits = {
    .name = "Waits",
    .about = "Who waits for whom, as a tree: below each wait what it waits for.",
    .load = model_waits,
};
