/* html_waits.c: who waits for whom, as the collector last saw it (table wait_state): a tree. */
#include "cmd/export/html.h"
#include "cmd/export/place.h"
#include "lib/base/moment.h"
#include "lib/trace/cursor.h"

enum { COLUMN_TEXT, COLUMN_PROCESS, COLUMN_DEPTH, COLUMN_CYCLE, COLUMN_STUCK, COLUMN_AGAIN };
enum { COLUMN_SINCE = COLUMN_AGAIN + 1, COLUMN_STACK, COLUMN_IS_ADDRESS };

static void put_wait_place(const struct html *html, const struct cursor *row)
{
    char path[PATH_MAX];
    struct shown_frames frames;
    int process = cursor_process(row, COLUMN_PROCESS);
    if (process < 0)
        return;
    site_shown_frames(html->export->report->trace, process,
                      (uint64_t)cursor_number(row, COLUMN_STACK),
                      cursor_number(row, COLUMN_IS_ADDRESS), &frames);
    if (frames.shown < 0)
        return;
    fputs(" <span class=place>", html->out);
    html_path(html, place_path(html->export, frames.frame[frames.shown].file, path));
    fprintf(html->out, ":%d</span>", frames.frame[frames.shown].line);
}

static void put_wait(const struct html *html, const struct cursor *row)
{
    char duration[64];
    uint64_t since_ns = (uint64_t)cursor_number(row, COLUMN_SINCE);
    uint64_t end_ns = html->export->report->end_ns;
    fprintf(html->out, "<li class=%s style=\"--depth:%d\">%s%s",
            cursor_number(row, COLUMN_STUCK) ? "stuck" : "may-go-on",
            (int)cursor_number(row, COLUMN_DEPTH),
            cursor_number(row, COLUMN_CYCLE) ? "<strong>a cycle</strong>: " : "",
            cursor_number(row, COLUMN_AGAIN) ? "as above: " : "");
    html_text(html, cursor_text(row, COLUMN_TEXT));
    if (since_ns && since_ns < end_ns)
        fprintf(html->out, " <span class=more>for %s</span>",
                moment_duration(end_ns - since_ns, duration, sizeof duration));
    put_wait_place(html, row);
}

int html_waits(const struct html *html, struct error *err)
{
    static const char sql[] = "SELECT text, process, depth, in_cycle, stuck, again, since_ns, "
                              "stack, stack_is_address FROM wait_state ORDER BY id";
    struct trace *trace = html->export->report->trace;
    struct cursor row = cursor_new(trace, sql, NULL, 0);
    bool any = false;
    int result;
    if (trace_database_count(trace) != 1) /* each host's collector saw only its own waits */
        return 0;
    while ((result = cursor_next(&row, err)) == 1) {
        if (!any)
            fputs("<section id=waits><h2>Who waits for whom</h2><ul class=waits>", html->out);
        any = true;
        put_wait(html, &row);
    }
    if (any)
        fputs("</ul></section>\n", html->out);
    return result;
}
