/* keys.c: which key gives which command, and when: a command that needs rows waits for them.
 *
 * People type faster than a model answers, and scripts do always: `2 Enter` means the first finding
 * also where the findings are not there yet. So a key is held until the model has answered the last
 * request for a view, and the keys behind it stay behind it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/commands.h"
#include "tui/screen.h"

_Static_assert(VIEWS_NUMBERED <= 9, "a view has a digit as its key");

enum {
    POPUP_FRAME = 2,
    SHIFT_COLUMNS = 8,
    WHEEL_ROWS = 3,
    CONTROL_B = 2,
    CONTROL_F = 6,
    CONTROL_L = 12,
    CONTROL_U = 21,
    CONTROL_W = 23
};

enum key_flag {
    KEY_ANYTIME = 1, /* it needs no rows */
    KEY_LEAVES = 2,  /* it leaves the view: keys that are held for that view are void */
    KEY_TYPES = 4    /* what follows is text or closes a window, not a command */
};

enum {
    ON_ALL = 0,
    ON_SEQUENCE = 1 << VIEW_SEQUENCE,
    ON_TIMELINE = 1 << VIEW_TIMELINE,
};

static app_command start_search, start_filter, start_rank;

static const struct key_rule {
    int key;
    app_command *act;
    int argument;
    unsigned flags, views; /* views: ON_*, those that have the key */
} key_rules[] = {
    {'c', app_do_comm, 1, 0, ON_SEQUENCE | ON_TIMELINE},
    {'C', app_do_comm, -1, 0, ON_SEQUENCE | ON_TIMELINE},
    {'d', app_do_differ, 0, 0, ON_SEQUENCE},
    {'+', app_do_zoom, 1, 0, ON_TIMELINE},
    {'=', app_do_zoom, 1, 0, ON_TIMELINE},
    {'-', app_do_zoom, -1, 0, ON_TIMELINE},
    {'<', app_do_pan, -1, 0, ON_TIMELINE},
    {',', app_do_pan, -1, 0, ON_TIMELINE},
    {'>', app_do_pan, 1, 0, ON_TIMELINE},
    {'.', app_do_pan, 1, 0, ON_TIMELINE},
    {'0', app_do_whole, 0, 0, ON_TIMELINE},
#define VIEW(NAME, name) {'1' + VIEW_##NAME, app_do_view, VIEW_##NAME, KEY_LEAVES, ON_ALL},
#define INNER_VIEW(NAME, name)
#include "tui/views.def"
#undef VIEW
#undef INNER_VIEW
    {SCREEN_TAB, app_do_tab, 1, KEY_LEAVES, ON_ALL},
    {SCREEN_BACKTAB, app_do_tab, -1, KEY_LEAVES, ON_ALL},
    {'q', app_do_close, 0, KEY_ANYTIME, ON_ALL},
    {'j', app_do_move, 1, 0, ON_ALL},
    {SCREEN_DOWN, app_do_move, 1, 0, ON_ALL},
    {'k', app_do_move, -1, 0, ON_ALL},
    {SCREEN_UP, app_do_move, -1, 0, ON_ALL},
    {SCREEN_WHEEL_DOWN, app_do_move, WHEEL_ROWS, 0, ON_ALL},
    {SCREEN_WHEEL_UP, app_do_move, -WHEEL_ROWS, 0, ON_ALL},
    {SCREEN_PAGE_DOWN, app_do_page, 1, 0, ON_ALL},
    {CONTROL_F, app_do_page, 1, 0, ON_ALL},
    {SCREEN_PAGE_UP, app_do_page, -1, 0, ON_ALL},
    {CONTROL_B, app_do_page, -1, 0, ON_ALL},
    {'g', app_do_jump, 0, 0, ON_ALL},
    {SCREEN_HOME, app_do_jump, 0, 0, ON_ALL},
    {'G', app_do_jump, 1, 0, ON_ALL},
    {SCREEN_END, app_do_jump, 1, 0, ON_ALL},
    {'l', app_do_shift, SHIFT_COLUMNS, KEY_ANYTIME, ON_ALL},
    {SCREEN_RIGHT, app_do_shift, SHIFT_COLUMNS, KEY_ANYTIME, ON_ALL},
    {'h', app_do_shift, -SHIFT_COLUMNS, KEY_ANYTIME, ON_ALL},
    {SCREEN_LEFT, app_do_shift, -SHIFT_COLUMNS, KEY_ANYTIME, ON_ALL},
    {'>', app_do_shift, SHIFT_COLUMNS, KEY_ANYTIME, ON_ALL}, /* as the mark of a cell that is cut */
    {'<', app_do_shift, -SHIFT_COLUMNS, KEY_ANYTIME, ON_ALL},
    {SCREEN_ENTER, app_do_open, 0, 0, ON_ALL},
    {SCREEN_ESCAPE, app_do_back, 0, KEY_ANYTIME, ON_ALL},
    {SCREEN_BACKSPACE, app_do_back, 0, KEY_ANYTIME, ON_ALL},
    {SCREEN_F3, start_search, 0, KEY_ANYTIME | KEY_TYPES, ON_ALL},
    {SCREEN_F4, start_filter, 0, KEY_ANYTIME | KEY_TYPES, ON_ALL},
    {SCREEN_F6, app_do_sort, 1, 0, ON_ALL},
    {SCREEN_F10, app_do_leave, 0, KEY_LEAVES, ON_ALL},
    {'/', start_search, 0, KEY_ANYTIME | KEY_TYPES, ON_ALL},
    {'f', start_filter, 0, KEY_ANYTIME | KEY_TYPES, ON_ALL},
    {':', start_rank, 0, KEY_ANYTIME | KEY_TYPES, ON_ALL},
    {'n', app_do_find, 1, 0, ON_ALL},
    {'N', app_do_find, -1, 0, ON_ALL},
    {'s', app_do_sort, 1, 0, ON_ALL},
    {'S', app_do_sort, -1, 0, ON_ALL},
    {' ', app_do_pause, 0, KEY_ANYTIME, ON_ALL},
    {'e', app_do_explain, 0, 0, ON_ALL},
    {'t', app_do_stacks, 0, 0, ON_ALL},
    {'o', app_do_edit, 0, 0, ON_ALL},
    {'y', app_do_write, 0, 0, ON_ALL},
    {'m', app_do_mouse, 0, KEY_ANYTIME, ON_ALL},
    {'?', app_do_help, 0, KEY_ANYTIME | KEY_TYPES, ON_ALL},
    {SCREEN_F1, app_do_help, 0, KEY_ANYTIME | KEY_TYPES, ON_ALL},
    {CONTROL_L, app_do_redraw, 0, KEY_ANYTIME, ON_ALL},
    {SCREEN_CLICK, app_do_click, 0, KEY_ANYTIME, ON_ALL}, /* on what is on the screen now */
};

/* What the key does in a view; NULL: nothing. */
static const struct key_rule *rule_find(int key, enum view_id view)
{
    for (size_t i = 0; i < sizeof key_rules / sizeof *key_rules; i++)
        if (key_rules[i].key == key &&
            (key_rules[i].views == ON_ALL || key_rules[i].views & 1u << view))
            return &key_rules[i];
    return NULL;
}

static unsigned key_flags(const struct app *app, int key)
{
    const struct key_rule *rule = rule_find(key, app->place[app->depth - 1].query.view);
    return rule ? rule->flags : 0;
}

/* --- typed text */

static void start_typing(struct app *app, enum app_mode mode, const char *text)
{
    app->mode = mode;
    snprintf(app->typed, sizeof app->typed, "%s", text);
}

static void start_search(struct app *app, int unused)
{
    (void)unused;
    app->search_from = app_place(app)->table.selected;
    start_typing(app, MODE_SEARCH, "");
}

static void start_filter(struct app *app, int unused)
{
    (void)unused;
    start_typing(app, MODE_FILTER, app_place(app)->table.filter);
}

static void start_rank(struct app *app, int unused)
{
    (void)unused;
    start_typing(app, MODE_RANK, "");
}

/* Takes the last character away: its bytes, in UTF-8. */
static void typed_shorten(char *typed)
{
    size_t bytes = strlen(typed);
    while (bytes > 0 && (typed[--bytes] & 0xc0) == 0x80)
        ;
    typed[bytes] = '\0';
}

/* Takes the last word away, and blanks behind it. */
static void typed_shorten_word(char *typed)
{
    size_t bytes = strlen(typed);
    while (bytes > 0 && typed[bytes - 1] == ' ')
        bytes--;
    while (bytes > 0 && typed[bytes - 1] != ' ')
        bytes--;
    typed[bytes] = '\0';
}

static void change_typed(struct app *app, int key)
{
    size_t bytes = strlen(app->typed);
    if (key == SCREEN_BACKSPACE) {
        typed_shorten(app->typed);
    } else if (key == CONTROL_W) {
        typed_shorten_word(app->typed);
    } else if (key >= ' ' && key < 0x100 && key != 0x7f && bytes + 1 < sizeof app->typed) {
        app->typed[bytes] = (char)key;
        app->typed[bytes + 1] = '\0';
    } else if (key == SCREEN_ESCAPE || key == CONTROL_U) {
        app->typed[0] = '\0';
    }
}

static void go_to_typed_rank(struct app *app)
{
    char *end;
    long rank = strtol(app->typed, &end, 10);
    if (end == app->typed || end[strspn(end, " ")] || rank < 0 || rank > INT_MAX)
        app_say(app, ": takes a rank, as :613; not '%s'", app->typed);
    else
        app_do_rank(app, (int)rank);
}

static void type_key(struct app *app, int key)
{
    struct table *table = &app_place(app)->table;
    bool searches = app->mode == MODE_SEARCH, ends = key == SCREEN_ENTER || key == SCREEN_ESCAPE;
    char *to = searches ? table->search : table->filter;
    change_typed(app, key);
    if (app->mode == MODE_RANK) {
        app->mode = ends ? MODE_USUAL : MODE_RANK;
        if (key == SCREEN_ENTER && *app->typed)
            go_to_typed_rank(app);
        return;
    }
    snprintf(to, TABLE_TEXT, "%s", app->typed);
    if (app->shown && !searches)
        table_update(table, &app->picture.rows);
    if (searches && app->shown && *to && key != SCREEN_ENTER)
        table_find_from(table, &app->picture.rows, app->search_from);
    if (key == SCREEN_ENTER && searches && *to &&
        !(app->shown && table_find_from(table, &app->picture.rows, app->search_from)))
        app_do_find(app, 1);
    if (ends)
        app->mode = MODE_USUAL;
}

/* --- at once or later */

/* Keys that people close a window with; any other one closes it and means what it always does. */
static bool only_closes(int key)
{
    static const int closing[] = {
        SCREEN_ESCAPE, SCREEN_ENTER, SCREEN_BACKSPACE, SCREEN_F1, SCREEN_CLICK, ' ', '?', 'q'};
    for (size_t i = 0; i < sizeof closing / sizeof *closing; i++)
        if (closing[i] == key)
            return true;
    return false;
}

static int popup_lines(int key)
{
    int page = screen_height() - POPUP_FRAME;
    switch (key) {
    case SCREEN_DOWN:
    case SCREEN_WHEEL_DOWN:
    case 'j':
        return 1;
    case SCREEN_UP:
    case SCREEN_WHEEL_UP:
    case 'k':
        return -1;
    case SCREEN_PAGE_DOWN:
        return page;
    case SCREEN_PAGE_UP:
        return -page;
    default:
        return 0;
    }
}

static void act(struct app *app, int key)
{
    app->message[0] = '\0';
    if (app->mode == MODE_POPUP) {
        if (popup_lines(key) != 0 && screen_popup_scroll(popup_lines(key)))
            return;
        screen_popup_close();
        app->mode = MODE_USUAL;
        if (only_closes(key))
            return;
    }
    if (app->mode != MODE_USUAL) {
        type_key(app, key);
    } else {
        const struct key_rule *rule = rule_find(key, app_place(app)->query.view);
        if (rule)
            rule->act(app, rule->argument);
        else if (key > ' ' && key < 0x7f)
            app_say(app, "no key '%c' in this view; ? lists keys", key);
        else
            app_say(app, "no such key in this view; ? lists keys");
    }
}

/* Text can be typed at any time, but a search looks at rows. */
static bool key_must_wait(const struct app *app, int key)
{
    if (app->answered == app->asked)
        return false;
    if (app->mode == MODE_USUAL || (app->mode == MODE_POPUP && !only_closes(key)))
        return !(key_flags(app, key) & (KEY_ANYTIME | KEY_LEAVES));
    return app->mode == MODE_SEARCH && key == SCREEN_ENTER;
}

/* The key leaves the view whatever the held keys before it do. */
static bool leaves_now(const struct app *app, int key)
{
    for (int i = 0; i < app->held; i++)
        if (key_flags(app, app->held_key[i]) & KEY_TYPES)
            return false;
    return app->mode == MODE_USUAL && key_flags(app, key) & KEY_LEAVES;
}

void app_key(struct app *app, int key)
{
    if (key == SCREEN_RESIZE) {
        if (app->mode == MODE_POPUP)
            app_do_help(app, 0);
        screen_redraw();
        app_ask(app);
        return;
    }
    if (leaves_now(app, key))
        app->held = 0;
    if (app->held == 0 && !key_must_wait(app, key))
        act(app, key);
    else if (app->held < APP_HELD_MAX)
        app->held_key[app->held++] = key;
}

void app_keys_held(struct app *app)
{
    while (app->held > 0 && !app->leaving && !key_must_wait(app, app->held_key[0])) {
        int key = app->held_key[0];
        memmove(app->held_key, app->held_key + 1, (size_t)--app->held * sizeof *app->held_key);
        act(app, key);
    }
}
