/* keys.c: what each key does. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/app.h"
#include "tui/screen.h"

enum { PAGE_OVERLAP = 1, SHIFT = 8, CONTROL_B = 2, CONTROL_F = 6, CONTROL_L = 12 };

static const struct rows *rows_of(const struct app *app)
{
    return &app->picture.rows;
}

static struct table *table_of(struct app *app)
{
    return &app_place(app)->table;
}

__attribute__((format(printf, 2, 3))) static void say(struct app *app, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(app->message, sizeof app->message, format, args);
    va_end(args);
}

/* --- moving
 * ---------------------------------------------------------------------------------------------- */

/* At the end of what a long sequence shows the next stretch of it is fetched. */
static void move(struct app *app, int by)
{
    struct place *place = app_place(app);
    if (!app->shown || table_move(&place->table, rows_of(app), by) ||
        place->query.view != VIEW_SEQUENCE)
        return;
    int64_t step = app->picture.query.window / 2, shown = app->picture.query.number,
            number = by > 0 ? shown + step : shown - step;
    place->query.number = number < 0 ? 0 : number;
    app_ask(app);
}

static void jump(struct app *app, bool last)
{
    struct place *place = app_place(app);
    if (app->shown)
        table_move(&place->table, rows_of(app), last ? INT_MAX : INT_MIN);
    if (place->query.view != VIEW_SEQUENCE)
        return;
    place->query.number = last ? NUMBER_LAST : 0;
    place->table.has_selected = false;
    app_ask(app);
}

static void shift(struct app *app, int by)
{
    struct table *table = table_of(app);
    table->shift = table->shift + by < 0 ? 0 : table->shift + by;
}

static void follow(struct app *app)
{
    const struct row *row = app->shown ? table_selected(table_of(app), rows_of(app)) : NULL;
    if (!row || row->target.view < 0)
        return;
    const struct target *target = &row->target;
    app_open(app, &(struct query){.view = (enum view_id)target->view,
                                  .comm = target->comm,
                                  .number = (int64_t)target->number,
                                  .process = target->process,
                                  .finding = target->finding});
}

static void explain(struct app *app)
{
    const struct place *place = app_place(app);
    const struct row *row = app->shown ? table_selected(&place->table, rows_of(app)) : NULL;
    uint32_t finding = place->query.view == VIEW_FINDING ? place->query.finding
                       : row                             ? row->target.finding
                                                         : 0;
    if (place->query.view == VIEW_EXPLAIN)
        app_back(app);
    else if (finding)
        app_open(app, &(struct query){.view = VIEW_EXPLAIN, .finding = finding});
    else
        say(app, "e explains a finding: go to one first (2)");
}

/* --- typed text
 * ------------------------------------------------------------------------------------------ */

static void type(struct app *app, int key)
{
    size_t bytes = strlen(app->typed);
    struct table *table = table_of(app);
    char *to = app->mode == MODE_SEARCH ? table->search : table->filter;
    if (key == SCREEN_BACKSPACE && bytes > 0) {
        do
            app->typed[--bytes] = '\0';
        while (bytes > 0 && (app->typed[bytes] & 0xc0) == 0x80);
    } else if (key >= ' ' && key < 0x100 && key != 0x7f && bytes + 1 < sizeof app->typed) {
        app->typed[bytes] = (char)key;
        app->typed[bytes + 1] = '\0';
    } else if (key == SCREEN_ESCAPE) {
        app->typed[0] = '\0';
    }
    if (key == SCREEN_ENTER || key == SCREEN_ESCAPE || app->mode == MODE_FILTER) {
        snprintf(to, TABLE_TEXT, "%s", app->typed);
        table_update(table, rows_of(app));
    }
    if (key == SCREEN_ENTER && app->mode == MODE_SEARCH && *to &&
        !table_find(table, rows_of(app), 1))
        say(app, "no row holds '%s'", to);
    if (key == SCREEN_ENTER || key == SCREEN_ESCAPE)
        app->mode = MODE_USUAL;
}

static void start_typing(struct app *app, enum app_mode mode)
{
    app->mode = mode;
    snprintf(app->typed, sizeof app->typed, "%s", mode == MODE_FILTER ? table_of(app)->filter : "");
}

static void search_on(struct app *app, int direction)
{
    struct table *table = table_of(app);
    if (!*table->search)
        say(app, "nothing to search for yet: / asks for it");
    else if (!table_find(table, rows_of(app), direction))
        say(app, "no row holds '%s'", table->search);
}

/* --- the rest
 * -------------------------------------------------------------------------------------------- */

/* The next column with a title after `column` (from 0), -1 if there is none: untitled ones hold
 * running text or marks. */
static int titled_after(const struct rows *rows, int column)
{
    while (++column < rows->columns)
        if (*rows->column[column].title)
            return column;
    return -1;
}

/* By the next column (1), smallest first, then largest; after the last, or at once (-1), in the
 * view's own order. */
static void sort(struct app *app, int way)
{
    struct table *table = table_of(app);
    const struct rows *rows = rows_of(app);
    if (!app->shown || rows->tree || titled_after(rows, -1) < 0) {
        say(app, "this view has its own order");
        return;
    }
    table->sort = way < 0           ? 0
                  : table->sort > 0 ? -table->sort
                                    : titled_after(rows, -table->sort - 1) + 1;
    table_update(table, rows);
    if (table->sort)
        say(app, "by %s, %s", rows->column[abs(table->sort) - 1].title,
            table->sort > 0 ? "smallest first" : "largest first");
    else
        say(app, "in the view's own order");
}

void app_write(struct app *app)
{
    char name[64];
    time_t now = time(NULL);
    struct tm local;
    localtime_r(&now, &local);
    size_t used =
        (size_t)snprintf(name, sizeof name, "ddpcheck-%s-", views[app_place(app)->query.view].name);
    strftime(name + used, sizeof name - used, "%H%M%S.txt", &local);
    for (char *c = name; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    FILE *file = fopen(name, "wxe");
    if (!file) {
        say(app, "can't write %s: %s", name, strerror(errno));
        return;
    }
    rows_print(&app->picture.diagnosis, screen_width(), file);
    putc('\n', file);
    rows_print(rows_of(app), screen_width() > 120 ? screen_width() : 120, file);
    bool failed = ferror(file);
    if (fclose(file) || failed)
        say(app, "can't write %s: %s", name, strerror(errno));
    else
        say(app, "written to %s", name);
}

static void help(struct app *app)
{
    static const struct view_key common[] = {
        {"1-7 Tab", "views"},
        {"arrows hjkl", "move"},
        {"PgUp PgDn g G", "by pages, to the ends"},
        {"Enter Esc", "into, back"},
        {"/ n N", "search, on, back"},
        {"f", "show only rows that hold a text"},
        {"s S", "sort by the next column, not at all"},
        {"space", "pause"},
        {"e", "explain the finding"},
        {"y", "write the view to a file"},
        {"m", "mouse on and off"},
        {"? F1", "this help"},
        {"q", "leave; the job goes on"},
    };
    const struct view *view = &views[app_place(app)->query.view];
    struct rows lines = {0};
    char title[64];
    snprintf(title, sizeof title, " %s ", view->name);
    rows_paragraph(&lines, TONE_PLAIN, 60, view->about);
    for (int i = 0; i < VIEW_KEYS_MAX && view->key[i].keys; i++)
        rows_line(&lines, TONE_STRONG, "%-14s %s", view->key[i].keys, view->key[i].what);
    rows_line(&lines, TONE_PLAIN, "%s", "");
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        rows_line(&lines, TONE_PLAIN, "%-14s %s", common[i].keys, common[i].what);
    screen_popup(title, &lines, app->ascii);
    rows_free(&lines);
    app->mode = MODE_POPUP;
}

static void zoom(struct app *app, double factor, double by)
{
    struct query *query = &app_place(app)->query;
    const struct query *shown = &app->picture.query;
    double span = (double)(shown->end_ns - shown->begin_ns),
           middle = (double)shown->begin_ns + span * (0.5 + by);
    if (!app->shown || shown->end_ns == 0)
        return;
    span *= factor;
    if (span < 1e4 || span > 1e15)
        return;
    query->begin_ns = (uint64_t)(middle - span / 2);
    query->end_ns = (uint64_t)(middle + span / 2);
    app_ask(app);
}

/* Keys of single views. Returns false for others. */
static bool view_key(struct app *app, int key)
{
    struct query *query = &app_place(app)->query;
    bool sequence = query->view == VIEW_SEQUENCE, timeline = query->view == VIEW_TIMELINE;
    if ((sequence || timeline) && (key == 'c' || key == 'C')) {
        if (app->shown)
            query->comm = app->picture.query.comm;
        query->comm_step = key == 'c' ? 1 : -1;
        query->number = NUMBER_LAST;
        app_place(app)->table.has_selected = false;
        app_ask(app);
    } else if (sequence && key == 'd') {
        if (app->shown)
            query->comm = app->picture.query.comm;
        query->number = NUMBER_DIVERGENCE;
        app_place(app)->table.has_selected = false;
        app_ask(app);
    } else if (timeline && (key == '+' || key == '=' || key == '-')) {
        zoom(app, key == '-' ? 2 : 0.5, 0);
    } else if (timeline && (key == '<' || key == ',' || key == '>' || key == '.')) {
        zoom(app, 1, key == '<' || key == ',' ? -0.5 : 0.5);
    } else if (timeline && key == '0') {
        query->begin_ns = 1;
        query->end_ns = 0;
        app_ask(app);
    } else {
        return false;
    }
    return true;
}

static void toggle_pause(struct app *app)
{
    app->paused = !app->paused;
    reader_pause(app->reader, app->paused);
    if (!app->paused)
        app_ask(app);
}

static void click(struct app *app)
{
    int line, column, before = table_of(app)->selected;
    screen_click(&line, &column);
    if (app->shown && line < screen_height() - 1 &&
        table_click(table_of(app), rows_of(app), app->rows_line, line)) {
        if (table_of(app)->selected == before)
            follow(app);
        return;
    }
    for (int i = 0, at = 0; line == screen_height() - 1 && i < VIEWS_NUMBERED; i++) {
        int width = (int)strlen(views[i].name) + 2;
        if (column >= at && column < at + width)
            app_switch(app, (enum view_id)i);
        at += width + 1;
    }
}

static void command(struct app *app, int key)
{
    int page = screen_height() - app->rows_line - 3 - PAGE_OVERLAP;
    if (view_key(app, key))
        return;
    if (key >= '1' && key < '1' + VIEWS_NUMBERED) {
        app_switch(app, (enum view_id)(key - '1'));
        return;
    }
    switch (key) {
    case 'j':
    case SCREEN_DOWN:
        move(app, 1);
        break;
    case 'k':
    case SCREEN_UP:
        move(app, -1);
        break;
    case SCREEN_WHEEL_DOWN:
        move(app, 3);
        break;
    case SCREEN_WHEEL_UP:
        move(app, -3);
        break;
    case SCREEN_PAGE_DOWN:
    case CONTROL_F:
        move(app, page > 1 ? page : 1);
        break;
    case SCREEN_PAGE_UP:
    case CONTROL_B:
        move(app, page > 1 ? -page : -1);
        break;
    case 'g':
    case SCREEN_HOME:
        jump(app, false);
        break;
    case 'G':
    case SCREEN_END:
        jump(app, true);
        break;
    case 'l':
    case SCREEN_RIGHT:
        shift(app, SHIFT);
        break;
    case 'h':
    case SCREEN_LEFT:
        shift(app, -SHIFT);
        break;
    case SCREEN_ENTER:
        follow(app);
        break;
    case SCREEN_ESCAPE:
    case SCREEN_BACKSPACE:
        app_back(app);
        break;
    case SCREEN_TAB:
        app_switch(app, (app->place[0].query.view + 1) % VIEWS_NUMBERED);
        break;
    case SCREEN_BACKTAB:
        app_switch(app, (app->place[0].query.view + VIEWS_NUMBERED - 1) % VIEWS_NUMBERED);
        break;
    case '/':
        start_typing(app, MODE_SEARCH);
        break;
    case 'f':
        start_typing(app, MODE_FILTER);
        break;
    case 'n':
        search_on(app, 1);
        break;
    case 'N':
        search_on(app, -1);
        break;
    case 's':
        sort(app, 1);
        break;
    case 'S':
        sort(app, -1);
        break;
    case ' ':
        toggle_pause(app);
        break;
    case 'e':
        explain(app);
        break;
    case 'y':
        app_write(app);
        break;
    case 'm':
        app->mouse = !app->mouse;
        screen_mouse(app->mouse);
        say(app, "mouse %s", app->mouse ? "on (m: off, to select text)" : "off");
        break;
    case '?':
    case SCREEN_F1:
        help(app);
        break;
    case CONTROL_L:
        screen_redraw();
        break;
    case 'q':
        app->leaving = true;
        break;
    case SCREEN_CLICK:
        click(app);
        break;
    }
}

void app_key(struct app *app, int key)
{
    app->message[0] = '\0';
    if (key == SCREEN_RESIZE) {
        screen_popup_close();
        app->mode = app->mode == MODE_POPUP ? MODE_USUAL : app->mode;
        screen_redraw();
        app_ask(app);
    } else if (app->mode == MODE_POPUP) {
        screen_popup_close();
        app->mode = MODE_USUAL;
    } else if (app->mode != MODE_USUAL) {
        type(app, key);
    } else {
        command(app, key);
    }
}
