/* commands.c: what each command does with the view that is shown. */
#include "tui/commands.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "tui/view.h"
#include "tui/screen.h"
#include "tui/width.h"

enum { HELP_KEYS = 14, HELP_WIDTH = 60, HELP_MARGIN = 4 };
enum { LINES_AROUND = 2, PAGE_OVERLAP = 1, WRITE_WIDTH = 1000 /* a file has no edge */ };

static const struct rows *rows_shown(const struct app *app)
{
    return &app->picture.rows;
}

static struct table *table_shown(struct app *app)
{
    return &app_place(app)->table;
}

void app_say(struct app *app, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(app->message, sizeof app->message, format, args);
    va_end(args);
}

/* --- moving */

/* Where the text above leaves the view no room, moving scrolls that first. False: it does not. */
static bool lift(struct app *app, int by)
{
    int before = app->lifted;
    if (by > 0 || app_place(app)->table.selected == 0)
        app->lifted = rows_clamp(app->lifted + by, 0, app->lift_most);
    return app->lifted != before;
}

/* At the end of what a long sequence shows the next stretch of it is fetched. */
void app_do_move(struct app *app, int by)
{
    struct view_place *place = app_place(app);
    if (app->shown && lift(app, by))
        return;
    if (!app->shown || table_move(&place->table, rows_shown(app), by) ||
        place->query.view != VIEW_SEQUENCE)
        return;
    int64_t step = app->picture.query.window / 2, shown = app->picture.query.number;
    int64_t number = by > 0 ? shown + step : shown - step;
    place->query.number = number < 0 ? 0 : number;
    app_ask(app);
}

void app_do_page(struct app *app, int pages)
{
    int page = app->lifted < app->lift_most ? screen_height() - LINES_AROUND : app->room;
    int rows = pages * rows_clamp(page - PAGE_OVERLAP, 1, page + 1);
    if (app->lift_most == 0 && !rows_shown(app)->text)
        table_shown(app)->top += rows;
    app_do_move(app, rows);
}

void app_do_jump(struct app *app, int last)
{
    struct view_place *place = app_place(app);
    app->lifted = last ? app->lift_most : 0;
    if (app->shown)
        table_move(&place->table, rows_shown(app), last ? INT_MAX : INT_MIN);
    if (place->query.view != VIEW_SEQUENCE)
        return;
    place->query.number = last ? NUMBER_LAST : 0;
    place->table.has_selected = false;
    app_ask(app);
}

void app_do_shift(struct app *app, int by)
{
    struct table *table = table_shown(app);
    table->shift = table->shift + by < 0 ? 0 : table->shift + by;
}

void app_do_open(struct app *app, int unused)
{
    (void)unused;
    const struct row *row = app->shown ? table_selected(table_shown(app), rows_shown(app)) : NULL;
    const struct target above = {
        .view = VIEW_FINDING, .finding = app->picture.diagnosis.finding, .process = -1};
    bool unseen = app->lift_most > 0 && app->room <= 1 && above.finding;
    if (!unseen && (!row || row->target.view < 0))
        return;
    const struct target *target = unseen ? &above : &row->target;
    app_open(app, &(struct query){.view = (enum view_id)target->view,
                                  .comm = target->comm,
                                  .number = (int64_t)target->number,
                                  .process = target->process,
                                  .finding = target->finding});
}

void app_do_back(struct app *app, int unused)
{
    (void)unused;
    app_back(app);
}

void app_do_view(struct app *app, int view)
{
    app_switch(app, (enum view_id)view);
}

void app_do_tab(struct app *app, int by)
{
    app_switch(app, (app->place[0].query.view + (unsigned)(VIEWS_NUMBERED + by)) % VIEWS_NUMBERED);
}

/* The finding that is shown, or that the selected row is about, or that the text above is; 0 if
 * there is none. */
static uint32_t finding_at_hand(struct app *app)
{
    const struct query *query = &app_place(app)->query;
    const struct row *row = app->shown ? table_selected(table_shown(app), rows_shown(app)) : NULL;
    if (query->view == VIEW_FINDING)
        return query->finding;
    return row && row->target.finding ? row->target.finding : app->picture.diagnosis.finding;
}

void app_do_explain(struct app *app, int unused)
{
    (void)unused;
    uint32_t finding = finding_at_hand(app);
    if (app_place(app)->query.view == VIEW_EXPLAIN)
        app_back(app);
    else if (finding)
        app_open(app, &(struct query){.view = VIEW_EXPLAIN, .finding = finding});
    else
        app_say(app, "e explains a finding: go to one first (2)");
}

void app_do_rank(struct app *app, int rank)
{
    app_open(app, &(struct query){.view = VIEW_RANK, .number = rank, .process = -1});
}

/* The process that the view or its selected row is about; -1 if there is none. */
static int process_at_hand(struct app *app)
{
    const struct row *row = app->shown ? table_selected(table_shown(app), rows_shown(app)) : NULL;
    if (app->shown && app_place(app)->query.view == VIEW_RANK)
        return app->picture.query.process;
    return row ? row->target.process : -1;
}

void app_do_stacks(struct app *app, int unused)
{
    (void)unused;
    struct query *query = &app_place(app)->query;
    int process = process_at_hand(app);
    if (query->view == VIEW_STACKS) {
        query->begin_ns = monotonic_now_ns();
        app_ask(app);
    } else if (process >= 0) {
        app_open(app, &(struct query){
                          .view = VIEW_STACKS, .process = process, .begin_ns = monotonic_now_ns()});
    } else {
        app_say(app, "t reads the stacks of a rank: select one first (4)");
    }
}

/* The source line that the selected row is about, else the text above. */
static const char *place_at_hand(struct app *app)
{
    const struct row *row = app->shown ? table_selected(table_shown(app), rows_shown(app)) : NULL;
    if (row && row->place)
        return row->place;
    return app->shown && rows_shown(app)->place ? rows_shown(app)->place
                                                : app->picture.diagnosis.place;
}

void app_do_edit(struct app *app, int unused)
{
    (void)unused;
    char path[PATH_MAX], script[] = "exec $3 \"+$1\" \"$2\"";
    const char *editor = getenv("VISUAL");
    if (!editor || !*editor)
        editor = getenv("EDITOR") && *getenv("EDITOR") ? getenv("EDITOR") : "vi";
    const char *place = place_at_hand(app), *colon = place ? strrchr(place, ':') : NULL;
    if (!colon) {
        app_say(app, "o opens a source line: no line is known here");
        return;
    }
    snprintf(path, sizeof path, "%.*s", (int)(colon - place), place);
    if (access(path, R_OK)) {
        app_say(app, "can't read %s: %s", path, strerror(errno));
        return;
    }
    char *const arguments[] = {"sh", "-c",           script, "sh", (char *)colon + 1,
                               path, (char *)editor, NULL};
    int status = screen_lend(arguments);
    if (status < 0)
        app_say(app, "can't start the editor: %s", strerror(errno));
    else if (status)
        app_say(app, "the editor '%s' failed (VISUAL or EDITOR says which it is)", editor);
}

void app_do_find(struct app *app, int direction)
{
    struct table *table = table_shown(app);
    if (!*table->search)
        app_say(app, "nothing to search for yet: / asks for it");
    else if (!app->shown || !table_find(table, rows_shown(app), direction))
        app_say(app, "no row holds '%s'", table->search);
}

/* --- order */

/* The next column with a title after `column` (from 0), -1 if there is none: untitled ones hold
 * running text or marks. */
static int titled_column_after(const struct rows *rows, int column)
{
    while (++column < rows->columns)
        if (*rows->column[column].title)
            return column;
    return -1;
}

/* A column is sorted smallest first, then largest first; the view's own order follows the last. */
static int sort_after(int sort, const struct rows *rows)
{
    return sort > 0 ? -sort : titled_column_after(rows, -sort - 1) + 1;
}

void app_do_sort(struct app *app, int way)
{
    struct table *table = table_shown(app);
    const struct rows *rows = rows_shown(app);
    if (!app->shown || rows->tree || titled_column_after(rows, -1) < 0) {
        app_say(app, "this view has its own order");
        return;
    }
    table->sort = way < 0 ? 0 : sort_after(table->sort, rows);
    table_update(table, rows);
    if (table->sort)
        app_say(app, "by %s, %s", rows->column[abs(table->sort) - 1].title,
                table->sort > 0 ? "smallest first" : "largest first");
    else
        app_say(app, "in the view's own order");
}

/* --- keys of single views */

/* The communicator that is shown, where the query left it to the model. */
static void keep_comm(struct app *app, struct query *query)
{
    if (app->shown)
        query->comm = app->picture.query.comm;
    app_place(app)->table.has_selected = false;
}

void app_do_comm(struct app *app, int step)
{
    struct query *query = &app_place(app)->query;
    keep_comm(app, query);
    query->comm_step = step;
    query->number = NUMBER_LAST;
    app_ask(app);
}

void app_do_differ(struct app *app, int unused)
{
    (void)unused;
    struct query *query = &app_place(app)->query;
    keep_comm(app, query);
    query->number = NUMBER_DIVERGENCE;
    app_ask(app);
}

static void show_times(struct app *app, double factor, double by)
{
    struct query *query = &app_place(app)->query;
    const struct query *shown = &app->picture.query;
    double span = (double)(shown->end_ns - shown->begin_ns);
    double middle = (double)shown->begin_ns + span * (0.5 + by);
    if (!app->shown || shown->end_ns == 0)
        return;
    span *= factor;
    if (span < 1e4 || span > 1e15)
        return;
    query->begin_ns = (uint64_t)(middle - span / 2);
    query->end_ns = (uint64_t)(middle + span / 2);
    app_ask(app);
}

void app_do_zoom(struct app *app, int closer)
{
    show_times(app, closer > 0 ? 0.5 : 2, 0);
}

void app_do_pan(struct app *app, int later)
{
    show_times(app, 1, later * 0.5);
}

void app_do_whole(struct app *app, int unused)
{
    (void)unused;
    struct query *query = &app_place(app)->query;
    query->begin_ns = 1;
    query->end_ns = 0;
    app_ask(app);
}

/* --- the rest */

/* What the view shows, as text, nothing of it cut. The caller's; NULL when memory is short. */
static char *text_of_view(struct app *app, size_t *bytes)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, bytes);
    if (!file)
        return NULL;
    rows_print(&app->picture.diagnosis, WRITE_WIDTH, file);
    putc('\n', file);
    rows_print(rows_shown(app), WRITE_WIDTH, file);
    bool failed = ferror(file);
    if (fclose(file) == 0 && !failed)
        return text;
    free(text);
    return NULL;
}

void app_do_write(struct app *app, int unused)
{
    (void)unused;
    char name[64];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    size_t used = (size_t)snprintf(name, sizeof name, "ddpcheck-%s-",
                                   views[app_place(app)->query.view]->name);
    strftime(name + used, sizeof name - used, "%H%M%S.txt", &local);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    size_t bytes;
    char *text = text_of_view(app, &bytes);
    if (!text) {
        app_say(app, OUT_OF_MEMORY);
        return;
    }
    const char *copied = screen_copy(text, bytes) ? "copied, and " : "";
    FILE *file = fopen(name, "wxe");
    bool failed = !file || fwrite(text, 1, bytes, file) != bytes;
    if ((file && fclose(file)) || failed)
        app_say(app, "can't write %s: %s", name, strerror(errno));
    else
        app_say(app, "%swritten to %s", copied, name);
    free(text);
}

/* Beside the keys what they do, or below them where the terminal is narrow. */
static void add_help_line(struct rows *lines, enum tone tone, int width, const struct view_key *key)
{
    if (HELP_KEYS + 1 + (int)strlen(key->what) <= width) {
        rows_line(lines, tone, "%-*s %s", HELP_KEYS, key->keys, key->what);
        return;
    }
    rows_line(lines, tone, "%s", key->keys);
    for (const char *what = key->what; *what;) {
        const char *line = what;
        size_t bytes = width_wrap(line, width - 2, &what);
        rows_line(lines, tone, "  %.*s", (int)bytes, line);
    }
}

void app_do_help(struct app *app, int unused)
{
    (void)unused;
    char view_keys[16];
    snprintf(view_keys, sizeof view_keys, "1-%d Tab", VIEWS_NUMBERED);
    const struct view_key common[] = {
        {view_keys, "views"},
        {"arrows hjkl", "move; h and l scroll cells that > cuts"},
        {"PgUp PgDn g G", "by pages, to the ends"},
        {"Enter Esc", "open, back"},
        {"/ F3 n N", "search, next, previous"},
        {"f F4", "filter: text, rank:3 comm:5ae7 state:missing"},
        {"s F6 S", "sort by next column, clear sort"},
        {"space", "pause"},
        {":", "go to a rank, as :613"},
        {"e", "explain the finding"},
        {"t", "stacks of the rank as they are now"},
        {"o", "open the source line in $EDITOR"},
        {"y", "copy the view, and write it to a file"},
        {"m", "mouse off and on"},
        {"? F1", "this help"},
        {"q", "back; from a numbered view: quit"},
        {"F10", "quit; the job goes on"},
    };
    const struct view *view = views[app_place(app)->query.view];
    struct rows lines = {0};
    char title[64];
    snprintf(title, sizeof title, " %s ", view->name);
    int width = rows_clamp(screen_width() - HELP_MARGIN, 0, HELP_WIDTH);
    rows_paragraph(&lines, TONE_PLAIN, width, view->about);
    for (int i = 0; i < VIEW_KEYS_MAX && view->key[i].keys; i++)
        add_help_line(&lines, TONE_STRONG, width, &view->key[i]);
    rows_line(&lines, TONE_PLAIN, "%s", "");
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        add_help_line(&lines, TONE_PLAIN, width, &common[i]);
    screen_popup(title, &lines, app->ascii);
    app->mode = MODE_POPUP;
}

void app_do_pause(struct app *app, int unused)
{
    (void)unused;
    app->paused = !app->paused;
    reader_pause(app->reader, app->paused);
    if (!app->paused)
        app_ask(app);
}

void app_do_mouse(struct app *app, int unused)
{
    (void)unused;
    app->mouse = !app->mouse;
    screen_mouse(app->mouse);
    app_say(app, "mouse %s", app->mouse ? "on" : "off: select text with it (m: on)");
}

void app_do_redraw(struct app *app, int unused)
{
    (void)app;
    (void)unused;
    screen_redraw();
}

void app_do_close(struct app *app, int unused)
{
    (void)unused;
    if (app->depth > 1)
        app_back(app);
    else
        app->leaving = true;
}

void app_do_leave(struct app *app, int unused)
{
    (void)unused;
    app->leaving = true;
}

/* A click on a row selects it, on the selected one opens it; the last line has the views. */
void app_do_click(struct app *app, int unused)
{
    (void)unused;
    int line, column, before = table_shown(app)->selected;
    screen_click(&line, &column);
    if (app->shown && line < screen_height() - 1 &&
        table_click(table_shown(app), rows_shown(app), app->rows_line, line)) {
        if (table_shown(app)->selected == before)
            app_do_open(app, 0);
        return;
    }
    int letters = footer_letters(screen_width());
    for (int i = 0; line == screen_height() - 1 && i < VIEWS_NUMBERED; i++) {
        int at, columns;
        footer_place(i, letters, &at, &columns);
        if (column >= at && column < at + columns)
            app_switch(app, (enum view_id)i);
    }
}
