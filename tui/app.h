/* app.h: the running UI: which views lie over each other, what the keyboard is for just now, and
 * the last picture. tui.c runs it, keys.c and commands.c change it, draw.c shows it. */
#ifndef DDPCHECK_TUI_APP_H
#define DDPCHECK_TUI_APP_H

#include "tui/reader.h"
#include "tui/table.h"

enum { APP_DEPTH_MAX = 8, APP_MESSAGE = 256, APP_HELD_MAX = 256 };

enum app_mode { MODE_USUAL, MODE_SEARCH, MODE_FILTER, MODE_RANK, MODE_POPUP };

/* A view as the user left it. */
struct view_place {
    struct query query;
    struct table table;
};

struct app {
    struct reader *reader;
    struct view_place place[APP_DEPTH_MAX]; /* the last is shown; Esc drops it */
    int depth;
    enum app_mode mode;
    int search_from;           /* the row that was selected when the search began */
    char typed[TABLE_TEXT];    /* in MODE_SEARCH, MODE_FILTER and MODE_RANK */
    char message[APP_MESSAGE]; /* until the next key */
    struct picture picture;
    unsigned opened;            /* the opening of the databases that ids in places are from */
    uint64_t asked;             /* the last request; a picture of an older one is not shown */
    uint64_t asked_ns;          /* when, of the monotonic clock */
    uint64_t trace_bytes;       /* of the databases, when they were opened */
    uint64_t answered;          /* the last request that was answered, with rows or an error */
    int held_key[APP_HELD_MAX]; /* keys that wait for an answer */
    int held;
    bool shown; /* the picture is of the view that is asked for */
    bool ascii, paused, mouse, leaving;
    int rows_line, room;   /* where the table was drawn, and for how many rows there was room */
    int lifted, lift_most; /* lines above the view that are scrolled away, and that can be: where
                              they leave the table no room */
};

static inline struct view_place *app_place(struct app *app)
{
    return &app->place[app->depth - 1];
}

/* Asks the reader for the view at hand. */
void app_ask(struct app *app);
/* Opens a view over the one at hand, or instead of all. */
void app_open(struct app *app, const struct query *query);
void app_switch(struct app *app, enum view_id view);
void app_back(struct app *app);

/* keys.c: acts on a key, or holds it until the rows that it is about are there. */
void app_key(struct app *app, int key);
/* Acts on keys that were held, as far as they need not wait any more. */
void app_keys_held(struct app *app);
void app_draw(struct app *app); /* draw.c */

#endif
