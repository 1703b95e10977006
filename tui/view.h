/* view.h: the views: what each is called, which keys it has, and the model that fills it. */
#ifndef DDPCHECK_TUI_VIEW_H
#define DDPCHECK_TUI_VIEW_H

#include "tui/rows.h"
#include "tui/source.h"

enum view_id {
#define VIEW(NAME, name) VIEW_##NAME,
#define INNER_VIEW(NAME, name)
#include "tui/views.def"
#undef VIEW
#undef INNER_VIEW
    VIEWS_NUMBERED,
    VIEW_LAST_NUMBERED = VIEWS_NUMBERED - 1,
#define VIEW(NAME, name)
#define INNER_VIEW(NAME, name) VIEW_##NAME,
#include "tui/views.def"
#undef VIEW
#undef INNER_VIEW
    VIEWS
};

enum { NUMBER_LAST = -1, NUMBER_DIVERGENCE = -2 };

/* What a view is asked for. */
struct query {
    enum view_id view;
    uint64_t comm;  /* SEQUENCE, TIMELINE: 0 the one most worth a look */
    int comm_step;  /* from that communicator to the next (1) or the previous (-1); the model takes
                       it */
    int64_t number; /* SEQUENCE: the operation to show, or NUMBER_*; RANK: without a process, the
                       job's rank */
    int window;     /* SEQUENCE: how many numbers the model shows; the model's */
    int process;    /* RANK, STACKS; -1 none */
    uint32_t finding; /* FINDING, EXPLAIN */
    uint64_t begin_ns,
        end_ns;        /* TIMELINE: realtime; 0: as the model likes. STACKS: begin_ns is when
                                  they were asked for, of the monotonic clock */
    int width, height; /* of the screen's part that shows it */
    bool ascii;        /* no characters beyond ASCII */
};

/* Rows that a table has room for below the usual lines: more are put together. */
int query_room(const struct query *query);

/* Fills `rows` (empty before) and puts into *query what it chose itself (comm, number, times).
 * Returns 0, or -1 with err. Runs in the reader's thread. */
typedef int view_load(struct source *source, struct query *query, struct rows *rows,
                      struct error *err);

struct view_key {
    const char *keys, *what; /* for the help: "d", "first place where ranks differ" */
};

enum { VIEW_KEYS_MAX = 8 };

struct view {
    const char *name;  /* "Now" */
    const char *about; /* a sentence for the help */
    view_load *load;
    struct view_key key[VIEW_KEYS_MAX];
};

extern const struct view *const views[VIEWS];
#define VIEW(NAME, name) extern const struct view view_##name;
#define INNER_VIEW       VIEW
#include "tui/views.def"
#undef VIEW
#undef INNER_VIEW

/* The numbered views in their order: "now|findings|...". */
extern const char *const view_choices;

/* The characters by which states are distinguished besides colour. */
struct signs {
    const char *done, *started, *issued, *behind, *missing, *exited, *unseen, *same, *differs, *bar,
        *dot;
};
const struct signs *signs_of(const struct query *query);

/* Adds the streams of query->process: what is last on each, and the operation that it stands in. */
struct members;
int model_rank_streams(struct source *source, const struct query *query,
                       const struct members *members, struct rows *rows, struct error *err);

/* Adds the threads' stacks of query->process that were taken while the job hung. */
view_load model_rank_stacks;
/* Adds a row for each frame, innermost first: its function, and its place as far as `width` has
 * room for it. */
struct frame;
void rows_add_frames(struct rows *rows, int width, int depth, const struct frame *frame, int count);
/* The row is about the frame's source line; row NULL is allowed. */
void rows_set_frame(struct rows *rows, struct row *row, const struct frame *frame);

/* model_diagnosis.c: what stands above every view: the worst finding, or how the job goes. Over the
 * first view it is complete: the user's line, which rank did what, and the fix. */
int model_diagnosis(struct source *source, const struct query *query, struct rows *rows,
                    struct error *err);

/* The last line: the keys of the views, shortened until they fit. */

/* How long the names of the views may be, so that all keys fit into `width` columns. */
int footer_letters(int width);
/* Where the key of view `view` (from 0) begins, and how many columns it has. */
void footer_place(int view, int letters, int *column, int *columns);
/* What is to the right of the views at this width: "? help  q quit", "? q". */
const char *footer_rest(int width);

#endif
