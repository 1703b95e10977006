/* draw.c: the screen from top to bottom: title, diagnosis, the view's lines and table, keys. */
#include <stdio.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/moment.h"
#include "tui/app.h"
#include "tui/view.h"
#include "tui/screen.h"
#include "tui/width.h"

static const double waited_shown_s = 0.3;
enum { TABLE_LEAST = 3 }; /* lines of a table that is worth its place */

/* What of the rows is shown. */
static const char *place_text(const struct app *app, const struct table *table, char *text,
                              size_t bytes)
{
    *text = '\0';
    if (app->shown && *table->filter)
        snprintf(text, bytes, "filter: %s, %d of %d  ", table->filter, table->shown,
                 app->picture.rows.count);
    else if (app->lifted < app->lift_most)
        snprintf(text, bytes, "j: more  ");
    else if (app->shown && table->shown > app->room && app->room > 0)
        snprintf(text, bytes, "%d of %d  ", table->selected + 1, table->shown);
    return text;
}

static void draw_title(const struct app *app, const struct view_place *at, int width)
{
    char left[512], right[256], clock[64], place[TABLE_TEXT + 48];
    const struct picture *picture = &app->picture;
    const char *state = app->paused ? "paused" : picture->live ? "live" : "finished";
    snprintf(left, sizeof left, " ddpcheck  %s", *picture->path ? picture->path : "reading");
    snprintf(
        right, sizeof right, " %s%s  %s  %s ", place_text(app, &at->table, place, sizeof place),
        views[at->query.view]->name, picture->now_ns ? state : "",
        picture->now_ns ? moment_clock(picture->now_ns, picture->now_ns, clock, sizeof clock) : "");
    int columns = width_of(right), named = (int)sizeof " ddpcheck" - 1;
    if (columns >= width) { /* the clock is what a narrow screen can do without */
        snprintf(right, sizeof right, " %s  %s ", views[at->query.view]->name,
                 picture->now_ns ? state : "");
        columns = width_of(right);
    }
    bool has_room = named <= width - columns;
    screen_text(0, 0, width, TONE_STRONG, LOOK_BAR, has_room ? left : "");
    if (columns < width)
        screen_text(0, width - columns, columns, TONE_STRONG, LOOK_BAR, right);
}

static int draw_lines(const struct rows *rows, int first, int line, int last, int width)
{
    for (int i = first; i < rows->lines && line <= last; i++)
        screen_text(line++, 0, width, rows->line[i].tone, LOOK_USUAL, rows->line[i].text);
    return line;
}

/* "1 Now 2 Findings ...  ? help q quit", the view at hand marked. */
static void draw_keys(const struct app *app, int line, int width)
{
    const char *rest = footer_rest(width);
    int letters = footer_letters(width), shown = (int)strlen(rest);
    enum view_id view = app->place[0].query.view;
    screen_clear_line(line);
    for (int i = 0; i < VIEWS_NUMBERED; i++) {
        char text[32];
        int at, columns;
        footer_place(i, letters, &at, &columns);
        int digits = columns - (int)strlen(views[i]->name) >= 2 ? 2 : 1;
        snprintf(text, sizeof text, "%d%s%.*s", i + 1, digits == 2 ? " " : "", columns - digits,
                 views[i]->name);
        bool here = (int)view == i;
        if (here)
            screen_text(line, at, columns, TONE_STRONG, LOOK_BAR, text);
        else
            screen_text(line, at, columns, TONE_PLAIN, LOOK_USUAL, text);
    }
    screen_text(line, width - shown, shown, TONE_FAINT, LOOK_USUAL, rest);
}

/* What is typed, or was said last, or why the picture is old. */
static bool draw_message(const struct app *app, int line, int width)
{
    char text[APP_MESSAGE + TABLE_TEXT];
    static const char *const prompts[] = {[MODE_SEARCH] = "search",
                                          [MODE_FILTER] = "filter",
                                          [MODE_RANK] = "rank",
                                          [MODE_POPUP] = NULL};
    if (prompts[app->mode]) {
        snprintf(text, sizeof text, "%s: %s_", prompts[app->mode], app->typed);
        screen_text(line, 0, width, TONE_STRONG, LOOK_USUAL, text);
    } else if (*app->message) {
        screen_text(line, 0, width, TONE_NOTE, LOOK_USUAL, app->message);
    } else if (*app->picture.error.text) {
        screen_text(line, 0, width, TONE_WARNING, LOOK_USUAL, app->picture.error.text);
    } else if (*app->picture.warning.text) {
        screen_text(line, 0, width, TONE_WARNING, LOOK_USUAL, app->picture.warning.text);
    } else {
        return false;
    }
    return true;
}

/* The view is not there yet: how long that takes by now, and how much there is to read. Where it
 * can't be read, the message line says why. */
static void draw_waiting(const struct app *app, int line, int last, int width)
{
    char text[128];
    const double waited_s = (double)(monotonic_now_ns() - app->asked_ns) / 1e9;
    for (int i = line; i <= last; i++)
        screen_clear_line(i);
    if (waited_s < waited_shown_s || line > last || *app->picture.error.text)
        return;
    snprintf(text, sizeof text, "reading a trace of %.1f MB, for %.1f s",
             (double)app->trace_bytes / 1e6, waited_s);
    screen_text(line, 0, width, TONE_FAINT, LOOK_USUAL, text);
}

/* On a small screen it leaves the table no room: then it can be scrolled away. */
static int draw_diagnosis(struct app *app, int line, int last, int width)
{
    const struct rows *above = &app->picture.diagnosis;
    bool fits = line + above->lines + TABLE_LEAST <= last;
    app->lift_most = fits || !app->shown ? 0 : above->lines;
    app->lifted = rows_clamp(app->lifted, 0, app->lift_most);
    int next = draw_lines(above, app->lifted, line, last, width);
    if (next > line && next < last)
        screen_clear_line(next++);
    return next;
}

void app_draw(struct app *app)
{
    int width = screen_width(), height = screen_height(), line = 1, last = height - 2;
    struct view_place *place = app_place(app);
    const struct rows *rows = &app->picture.rows;
    if (width < 20 || height < 5) {
        screen_text(0, 0, width, TONE_PLAIN, LOOK_USUAL, "too small");
        screen_show();
        return;
    }
    if (place->query.view < VIEWS_NUMBERED)
        line = draw_diagnosis(app, line, last, width);
    else
        app->lift_most = app->lifted = 0;
    bool message = draw_message(app, last, width);
    int below = last - (message ? 1 : 0);
    if (app->shown) {
        line = draw_lines(rows, 0, line, below, width);
        app->rows_line = line;
        int room = below - line + 1;
        bool only_titles = room == 1 && !rows->text;
        if (only_titles)
            screen_clear_line(line);
        app->room = table_draw(&place->table, rows, line, only_titles ? 0 : room, width);
    } else {
        draw_waiting(app, line, below, width);
    }
    draw_title(app, place, width);
    draw_keys(app, height - 1, width);
    screen_show();
}
