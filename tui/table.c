/* table.c: draws a table and keeps its selection, filter and order. */
#include "tui/table.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "tui/filter.h"
#include "tui/screen.h"
#include "tui/width.h"
#include "lib/base/invariant.h"

enum { CELL_BYTES = 8192, WRAPPED_LEAST = 34 /* columns of a cell that goes on below */ };

void table_free(struct table *table)
{
    free(table->order);
    free(table->lines);
    *table = (struct table){0};
}

/* --- which rows, in which order --- */

/* In a tree what is above and below a row that matches stays, too. */
static void mark_matches(const struct table *table, const struct rows *rows, bool *keep)
{
    int below = -1; /* depth of a match that the rows at hand belong to */
    for (int i = 0; i < rows->count; i++) {
        bool matches = filter_keeps(rows, &rows->row[i], table->filter);
        if (below >= 0 && rows->row[i].depth <= below)
            below = -1;
        keep[i] = matches || below >= 0;
        if (!matches)
            continue;
        if (below < 0)
            below = rows->row[i].depth;
        for (int k = i - 1, depth = rows->row[i].depth; k >= 0 && depth > 0; k--)
            if (rows->row[k].depth < depth) {
                keep[k] = true;
                depth = rows->row[k].depth;
            }
    }
}

/* Numbers by their size, with what is around them ("#118", "-3", "! 3", "2.5 s") left to the rest
 * of the comparison. */
static int compare_texts(const char *a, const char *b)
{
    const char *x = a + strspn(a, "#-! "), *y = b + strspn(b, "#-! ");
    if (isdigit((unsigned char)*x) && isdigit((unsigned char)*y)) {
        double left = strtod(x, NULL), right = strtod(y, NULL);
        if (left != right)
            return left < right ? -1 : 1;
    }
    return strcasecmp(a, b);
}

struct sorting {
    const struct rows *rows;
    int column, sign;
};

static int compare_table_rows(const void *left, const void *right, void *context)
{
    const struct sorting *by = context;
    int a = *(const int *)left, b = *(const int *)right;
    const char *x = by->rows->row[a].cell[by->column].text,
               *y = by->rows->row[b].cell[by->column].text;
    int order = by->sign * compare_texts(x ? x : "", y ? y : "");
    return order ? order : a - b;
}

static void sort_rows_shown(struct table *table, const struct rows *rows)
{
    int column = abs(table->sort) - 1;
    if (table->sort == 0 || rows->tree || column >= rows->columns)
        return;
    struct sorting by = {rows, column, table->sort > 0 ? 1 : -1};
    if (table->shown)
        qsort_r(table->order, (size_t)table->shown, sizeof *table->order, compare_table_rows, &by);
}

static void choose_rows(struct table *table, const struct rows *rows)
{
    int drawn = table->shown;
    table->shown = 0;
    if (!ARRAY_RESERVE(table->order, table->order_room, rows->count) ||
        !ARRAY_RESERVE(table->lines, table->lines_room, rows->count))
        return;
    bool *keep = *table->filter ? calloc((size_t)rows->count + 1, sizeof *keep) : NULL;
    if (keep)
        mark_matches(table, rows, keep);
    for (int i = 0; i < rows->count; i++)
        if (!keep || keep[i])
            table->order[table->shown++] = i;
    free(keep);
    for (int i = drawn; i < table->shown; i++)
        table->lines[i] = 0;
    sort_rows_shown(table, rows);
}

static void hold(struct table *table, const struct rows *rows)
{
    if (table->selected >= table->shown)
        table->selected = table->shown - 1;
    if (table->selected < 0)
        table->selected = 0;
    invariant((size_t)table->shown <= table->order_room,
              "a table has room for the rows that it shows");
    table->has_selected = table->shown > 0;
    if (table->has_selected)
        table->selected_id = rows->row[table->order[table->selected]].id;
}

/* The selection follows its row; but the top of the table stays the top, where the worst is. */
void table_update(struct table *table, const struct rows *rows)
{
    choose_rows(table, rows);
    bool follows = table->has_selected && table->selected > 0;
    for (int i = 0; follows && i < table->shown; i++)
        if (rows->row[table->order[i]].id == table->selected_id) {
            table->top += i - table->selected;
            table->selected = i;
            break;
        }
    hold(table, rows);
}

bool table_move(struct table *table, const struct rows *rows, int by)
{
    int before = table->selected;
    if (rows->text && by > 0 && table->selected < table->top + table->height - 1)
        table->selected = table->top + table->height - 1;
    if (rows->text && by < 0 && table->selected > table->top)
        table->selected = table->top;
    if (by == INT_MIN)
        table->selected = table->top = 0;
    else if (by == INT_MAX)
        table->selected = table->shown - 1;
    else
        table->selected += by;
    hold(table, rows);
    return table->selected != before;
}

void table_select(struct table *table, const struct rows *rows, uint64_t id)
{
    for (int i = 0; i < table->shown; i++)
        if (rows->row[table->order[i]].id == id)
            table->selected = i;
    hold(table, rows);
}

bool table_find_from(struct table *table, const struct rows *rows, int from)
{
    for (int i = 0; i < table->shown && *table->search; i++) {
        int at = (from + i) % table->shown;
        if (row_holds(rows, &rows->row[table->order[at]], table->search)) {
            table->selected = at;
            hold(table, rows);
            return true;
        }
    }
    return false;
}

bool table_find(struct table *table, const struct rows *rows, int direction)
{
    for (int i = 1; i <= table->shown && *table->search; i++) {
        int at = (table->selected + direction * i + table->shown * 2) % table->shown;
        if (row_holds(rows, &rows->row[table->order[at]], table->search)) {
            table->selected = at;
            hold(table, rows);
            return true;
        }
    }
    return false;
}

const struct row *table_selected(const struct table *table, const struct rows *rows)
{
    bool there = table->shown > 0 && table->selected < table->shown &&
                 table->order[table->selected] < rows->count;
    return there ? &rows->row[table->order[table->selected]] : NULL;
}

/* --- drawing --- */

static void draw_cell(const struct rows *rows, int column, const char *text, int indent, int shift,
                      int line, int at, int width, enum tone tone, enum look look)
{
    char filled[CELL_BYTES];
    bool last = column == rows_last_column(rows);
    if (width < 0)
        return;
    if (last && shift > 0)
        text += width_fit(text, shift);
    int fill = rows->column[column].right ? width - width_of(text) : indent;
    snprintf(filled, sizeof filled, "%*s%s", fill > 0 ? fill : 0, "", text);
    screen_text(line, at, width, tone, look, filled);
    if (width > 0 &&
        width_of(filled) > width) /* as less -S; in the last column Right shows the rest */
        screen_text(line, at + width - 1, 1, TONE_FAINT, look, ">");
}

static enum look look_of_row(const struct table *table, const struct rows *rows,
                             const struct row *row, bool selected)
{
    if (selected)
        return LOOK_SELECTED;
    return *table->search && row_holds(rows, row, table->search) ? LOOK_FOUND : LOOK_USUAL;
}

/* What is found is marked where there is text. */
static void draw_blank(int line, int all, enum look look)
{
    screen_text(line, 0, all, TONE_PLAIN, look == LOOK_FOUND ? LOOK_USUAL : look, "");
}

static void draw_row(const struct table *table, const struct rows *rows, const struct row *row,
                     const int *width, int line, int all, enum look look)
{
    draw_blank(line, all, look);
    for (int i = 0, at = 0; i < rows->columns; at += width[i] + ROWS_GAP, i++) {
        int indent = rows->tree && i == 0 ? row->depth * ROWS_INDENT : 0;
        draw_cell(rows, i, row->cell[i].text ? row->cell[i].text : "", indent,
                  row->fixed ? 0 : table->shift, line, at, width[i], row->cell[i].tone, look);
    }
}

static bool draw_titles(const struct table *table, const struct rows *rows, const int *width,
                        int line, int all)
{
    char title[64];
    bool any = false;
    for (int i = 0; i < rows->columns; i++)
        any |= *rows->column[i].title != '\0';
    if (!any || rows->count == 0)
        return false;
    screen_text(line, 0, all, TONE_PLAIN, LOOK_USUAL, "");
    for (int i = 0, at = 0; i < rows->columns; at += width[i] + ROWS_GAP, i++) {
        const char *mark = abs(table->sort) != i + 1 || rows->tree ? ""
                           : table->sort > 0                       ? "^"
                                                                   : "v";
        snprintf(title, sizeof title, "%s%s", rows->column[i].title, mark);
        draw_cell(rows, i, title, 0, 0, line, at, width[i] + (*mark ? 1 : 0), TONE_FAINT,
                  LOOK_USUAL);
    }
    return true;
}

/* The lines that the last cell of a row takes, with what it says before `width` columns are full.
 */
static int lines_needed(const struct table *table, const struct rows *rows, const struct row *row,
                        int width)
{
    int last = rows_last_column(rows);
    const char *text = row->cell[last].text;
    bool is_whole = row->fixed || rows->text || table->shift > 0 || width < WRAPPED_LEAST ||
                    (last == 0 && rows->tree);
    int lines = 0;
    for (const char *next = text ? text : ""; *next && !is_whole; lines++)
        width_wrap(next, width, &next);
    return lines > 1 ? lines : 1;
}

/* Rows that do not fill the screen get the lines that their last cells need, the first ones first.
 */
static void share_lines(struct table *table, const struct rows *rows, int room, int width)
{
    int spare = room - table->shown;
    for (int i = 0; i < table->shown; i++) {
        table->lines[i] = i >= table->top && i < table->top + room;
        if (spare <= 0)
            continue;
        int more = lines_needed(table, rows, &rows->row[table->order[i]], width) - 1;
        if (more > spare)
            more = 0; /* cut in its first line, as elsewhere */
        table->lines[i] += more;
        spare -= more;
    }
}

/* A row whose last cell goes on below itself. */
static void draw_wrapped(const struct table *table, const struct rows *rows, struct row row,
                         const int *width, int line, int lines, int all, enum look look)
{
    int last = rows_last_column(rows), at = 0;
    char part[CELL_BYTES];
    const char *next = row.cell[last].text;
    for (int i = 0; i < last; i++)
        at += width[i] + ROWS_GAP;
    for (int i = 0; i < lines; i++) {
        const char *begin = next;
        size_t bytes = width_wrap(begin, width[last], &next);
        snprintf(part, sizeof part, "%.*s", (int)bytes, begin);
        if (i == 0) {
            row.cell[last].text = part;
            draw_row(table, rows, &row, width, line, all, look);
            continue;
        }
        draw_blank(line + i, all, look);
        draw_cell(rows, last, part, 0, 0, line + i, at, width[last], row.cell[last].tone, look);
    }
}

/* Why there is no row, in as many lines as it takes. */
static void draw_empty(const struct table *table, const struct rows *rows, int line, int room,
                       int width)
{
    char reason[256];
    const char *why = rows->empty ? rows->empty : "";
    if (*table->filter && rows->count) {
        filter_explain(table->filter, reason, sizeof reason);
        why = reason;
    }
    for (int i = 0; i < room && *why; i++) {
        char text[256];
        const char *begin = why;
        size_t bytes = width_wrap(begin, width > 1 ? width : 1, &why);
        snprintf(text, sizeof text, "%.*s", (int)bytes, begin);
        screen_text(line + i, 0, width, TONE_PLAIN, LOOK_USUAL, text);
    }
}

int table_draw(struct table *table, const struct rows *rows, int line, int height, int width)
{
    int column_width[ROW_CELLS_MAX] = {0}, titles = 0;
    if (height <= 0) {
        for (int i = 0; i < table->shown; i++)
            table->lines[i] = 0;
        return 0;
    }
    rows_layout(rows, width, column_width);
    titles = draw_titles(table, rows, column_width, line, width);
    int room = height - titles;
    table->height = room;
    if (table->top > table->selected)
        table->top = table->selected;
    if (table->selected >= table->top + room)
        table->top = table->selected - room + 1;
    if (table->top > table->shown - room)
        table->top = table->shown - room;
    if (table->top < 0)
        table->top = 0;
    share_lines(table, rows, room, column_width[rows_last_column(rows)]);
    int used = 0;
    for (int at = table->top; at < table->shown && used < room; used += table->lines[at++]) {
        const struct row *row = &rows->row[table->order[at]];
        enum look look = look_of_row(table, rows, row, at == table->selected && !rows->text);
        if (table->lines[at] > 1)
            draw_wrapped(table, rows, *row, column_width, line + titles + used, table->lines[at],
                         width, look);
        else
            draw_row(table, rows, row, column_width, line + titles + used, width, look);
    }
    for (; used < room; used++)
        screen_text(line + titles + used, 0, width, TONE_PLAIN, LOOK_USUAL, "");
    if (table->shown == 0)
        draw_empty(table, rows, line + titles, room, width);
    return room;
}

bool table_click(struct table *table, const struct rows *rows, int line, int clicked)
{
    bool titles = false;
    for (int i = 0; i < rows->columns; i++)
        titles |= *rows->column[i].title != '\0';
    int at = table->top, below = clicked - line - titles;
    while (at < table->shown && below >= table->lines[at])
        below -= table->lines[at++];
    if (below < 0 || at >= table->shown)
        return false;
    table->selected = at;
    hold(table, rows);
    return true;
}
