/* rows.h: what a view shows: lines above a table, and the table. Made by a model (model_*.c) from
 * SQL, drawn by widgets that know no SQL, or printed as text. */
#ifndef DDPCHECK_TUI_ROWS_H
#define DDPCHECK_TUI_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum tone {
    TONE_PLAIN,
    TONE_STRONG,
    TONE_FAINT,
    TONE_GOOD,
    TONE_NOTE,
    TONE_WARNING,
    TONE_ERROR,
    TONES
};

enum { ROW_CELLS_MAX = 8 };

struct cell {
    char *text;
    enum tone tone;
};

/* Where Enter leads. */
struct target {
    int view; /* enum view_id (view.h); -1 nowhere */
    uint64_t comm, number;
    int process;
    uint32_t finding;
};

struct row {
    struct cell cell[ROW_CELLS_MAX];
    uint64_t id; /* of what the row is about: the selection stays on it when rows are made anew */
    const char *state; /* static: what a filter calls its state; NULL none */
    bool fixed;        /* it holds marks: scrolling sideways leaves it where it is */
    int depth;         /* in a tree; a row belongs to the nearest one above it that is less deep */
    char *place;       /* the source line that it is about, "/home/me/train.c:72"; NULL none */
    struct target target;
};

struct column {
    const char *title;
    int least, most; /* columns at least and at most; 0: what it needs */
    bool right;      /* aligned to the right */
    bool optional;   /* left out where no row has text in it */
    bool minor;      /* left out where the last column would have too little room */
};

/* Zero-initialised is empty. */
struct rows {
    struct cell *line; /* above the table */
    int lines;
    uint32_t finding; /* that the lines are about; 0: none */
    char *place;      /* the source line that they are about, as in a row; NULL none */
    struct column column[ROW_CELLS_MAX];
    int columns;
    bool text; /* to be read: its rows lead nowhere, and moving scrolls */
    bool tree; /* depth is shown by indenting the first column, and rows can't be sorted */
    struct row *row;
    int count;
    const char *empty; /* what to say when there is no row; static */
    bool failed;       /* memory was short: something is missing */
};

void rows_free(struct rows *rows);

/* Adds a line above the table; the text is copied, cleaned of what could steer a terminal. */
void rows_line(struct rows *rows, enum tone tone, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, wrapped to `columns`. */
void rows_paragraph(struct rows *rows, enum tone tone, int columns, const char *text);
void rows_column(struct rows *rows, const char *title, int most, bool right);
/* The same, left out where no row has text in it. */
void rows_column_optional(struct rows *rows, const char *title, int most, bool right);
/* The last column that was added is left out where the table's last one would have too little
 * room. */
void rows_column_is_minor(struct rows *rows);
/* Adds a row without text; NULL when memory is short. Valid until the next one is added. */
struct row *rows_add(struct rows *rows, uint64_t id, int depth);
/* Sets a cell of the row; NULL row is allowed. */
void row_set(struct row *row, int cell, enum tone tone, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sets the source line that the row, or with row NULL the text above the table, is about; "" none.
 */
void rows_set_place(struct rows *rows, struct row *row, const char *place);

/* Columns that each of the table's columns gets within `width`; the last takes what is left. One
 * that is left out has -ROWS_GAP. */
enum { ROWS_GAP = 2, ROWS_INDENT = 2 };
void rows_layout(const struct rows *rows, int width, int column_width[ROW_CELLS_MAX]);
/* The last column that is not left out: the one that takes what is left, and can be scrolled;
 * 0 where there is no column. */
int rows_last_column(const struct rows *rows);
/* Everything as text laid out for `width` columns; the last cell of a row may be longer. */
void rows_print(const struct rows *rows, int width, FILE *out);
/* The number, or the limit beyond which it is. */
int rows_clamp(int number, int least, int most);
/* True if a cell of the row holds the text, without regard to case. */
bool row_holds(const struct rows *rows, const struct row *row, const char *text);

#endif
