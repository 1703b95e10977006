/* rows.c: builds, lays out and prints the rows of a view. */
#include "tui/rows.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "tui/width.h"
#include "lib/base/invariant.h"

enum { TEXT_BYTES = 8192, LAST_LEAST = 16 };

static void cell_free(struct cell *cell)
{
    free(cell->text);
    cell->text = NULL;
}

void rows_free(struct rows *rows)
{
    for (int i = 0; i < rows->lines; i++)
        cell_free(&rows->line[i]);
    for (int i = 0; i < rows->count; i++) {
        for (int k = 0; k < ROW_CELLS_MAX; k++)
            cell_free(&rows->row[i].cell[k]);
        free(rows->row[i].place);
    }
    free(rows->place);
    free(rows->line);
    free(rows->row);
    *rows = (struct rows){0};
}

static void add_line(struct rows *rows, enum tone tone, const char *text)
{
    char *copy = ARRAY_ADD(rows->line, rows->lines) ? width_clean(text) : NULL;
    if (!copy) {
        rows->failed = true;
        return;
    }
    rows->line[rows->lines++] = (struct cell){copy, tone};
}

void rows_line(struct rows *rows, enum tone tone, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_line(rows, tone, text);
}

void rows_paragraph(struct rows *rows, enum tone tone, int columns, const char *text)
{
    char line[TEXT_BYTES];
    do {
        const char *begin = text;
        size_t bytes = width_wrap(begin, columns > 1 ? columns : 1, &text);
        snprintf(line, sizeof line, "%.*s", (int)bytes, begin);
        add_line(rows, tone, line);
    } while (*text);
}

void rows_column(struct rows *rows, const char *title, int most, bool right)
{
    invariant(rows->columns < ROW_CELLS_MAX, "a row has a cell for each column");
    rows->column[rows->columns++] = (struct column){.title = title, .most = most, .right = right};
}

void rows_column_optional(struct rows *rows, const char *title, int most, bool right)
{
    rows_column(rows, title, most, right);
    rows->column[rows->columns - 1].optional = true;
}

void rows_column_is_minor(struct rows *rows)
{
    rows->column[rows->columns - 1].minor = true;
}

struct row *rows_add(struct rows *rows, uint64_t id, int depth)
{
    if (!ARRAY_ADD(rows->row, rows->count)) {
        rows->failed = true;
        return NULL;
    }
    rows->row[rows->count] =
        (struct row){.id = id, .depth = depth, .target = {.view = -1, .process = -1}};
    return &rows->row[rows->count++];
}

void row_set(struct row *row, int cell, enum tone tone, const char *format, ...)
{
    char text[TEXT_BYTES];
    if (!row)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cell_free(&row->cell[cell]);
    row->cell[cell] = (struct cell){width_clean(text), tone};
}

void rows_set_place(struct rows *rows, struct row *row, const char *place)
{
    char **to = row ? &row->place : &rows->place;
    free(*to);
    *to = *place ? strdup(place) : NULL;
    rows->failed |= *place && !*to;
}

static int cell_width(const struct rows *rows, const struct row *row, int cell)
{
    int indent = rows->tree && cell == 0 ? row->depth * ROWS_INDENT : 0;
    return row->cell[cell].text ? indent + width_of(row->cell[cell].text) : 0;
}

/* What a column needs, within its limit. */
static int wanted(const struct rows *rows, int column)
{
    int most = rows->column[column].most, width = width_of(rows->column[column].title);
    if (width < rows->column[column].least)
        width = rows->column[column].least;
    for (int i = 0; i < rows->count; i++) {
        int needed = cell_width(rows, &rows->row[i], column);
        width = needed > width ? needed : width;
        if (most && width >= most)
            return most;
    }
    return width;
}

static bool is_left_out(const struct rows *rows, int column)
{
    if (!rows->column[column].optional)
        return false;
    for (int i = 0; i < rows->count; i++)
        if (rows->row[i].cell[column].text && *rows->row[i].cell[column].text)
            return false;
    return true;
}

int rows_last_column(const struct rows *rows)
{
    int last = rows->columns > 0 ? rows->columns - 1 : 0;
    while (last > 0 && is_left_out(rows, last))
        last--;
    return last;
}

/* Minor columns go from the right until the last column has room for a few words. */
static void leave_out_minor(const struct rows *rows, int width, int needed[ROW_CELLS_MAX])
{
    int last = rows_last_column(rows), left = width;
    for (int i = 0; i < last; i++)
        left -= needed[i] + ROWS_GAP;
    for (int i = last - 1; i >= 0 && left < LAST_LEAST; i--)
        if (rows->column[i].minor && needed[i] >= 0) {
            left += needed[i] + ROWS_GAP;
            needed[i] = -ROWS_GAP;
        }
}

void rows_layout(const struct rows *rows, int width, int column_width[ROW_CELLS_MAX])
{
    int left = width, last = rows_last_column(rows), needed[ROW_CELLS_MAX];
    for (int i = 0; i < rows->columns; i++)
        needed[i] = is_left_out(rows, i) ? -ROWS_GAP : wanted(rows, i);
    leave_out_minor(rows, width, needed);
    for (int i = 0; i < rows->columns; i++) {
        bool takes_rest = i == last || (needed[i] > left && i < last);
        column_width[i] = takes_rest ? rows_clamp(left, 0, width) : needed[i];
        left -= column_width[i] + ROWS_GAP;
    }
}

static void print_cell(const struct column *column, const char *text, int indent, int width,
                       bool last, FILE *out)
{
    int used = indent < width ? indent : width;
    size_t bytes = width_fit(text, width - used);
    int columns = 0;
    char part[TEXT_BYTES];
    snprintf(part, sizeof part, "%.*s", (int)bytes, text);
    columns = width_of(part);
    int fill = width - used - columns;
    if (column->right)
        fprintf(out, "%*s", fill, "");
    fprintf(out, "%*s%s", used, "", part);
    if (!last)
        fprintf(out, "%*s", (column->right ? 0 : fill) + ROWS_GAP, "");
}

static int last_cell(const struct rows *rows, const struct row *row)
{
    int last = -1;
    for (int i = 0; i < rows->columns; i++)
        if (row->cell[i].text && *row->cell[i].text)
            last = i;
    return last;
}

/* Blanks at the end of a line are of no use in a file. */
static void print_trimmed(const char *text, size_t bytes, FILE *out)
{
    while (bytes > 0 && text[bytes - 1] == ' ')
        bytes--;
    fprintf(out, "%.*s\n", (int)bytes, text);
}

/* A file has room for all of the last cell. */
static int print_width(const struct rows *rows, const struct row *row, int cell, int width,
                       bool last)
{
    int needed = cell_width(rows, row, cell);
    return last && needed > width ? needed : width;
}

static void print_row(const struct rows *rows, const struct row *row, const int *width, FILE *out)
{
    int last = last_cell(rows, row);
    char *text = NULL;
    size_t bytes = 0;
    FILE *line = open_memstream(&text, &bytes);
    for (int i = 0; line && i <= last; i++)
        if (width[i] >= 0)
            print_cell(&rows->column[i], row->cell[i].text ? row->cell[i].text : "",
                       rows->tree && i == 0 ? row->depth * ROWS_INDENT : 0,
                       print_width(rows, row, i, width[i], i == last), i == last, line);
    if (line && fclose(line) == 0)
        print_trimmed(text, bytes, out);
    free(text);
}

void rows_print(const struct rows *rows, int width, FILE *out)
{
    int column_width[ROW_CELLS_MAX];
    for (int i = 0; i < rows->lines; i++)
        print_trimmed(rows->line[i].text, width_fit(rows->line[i].text, width), out);
    if (rows->count == 0 && rows->empty)
        fprintf(out, "%s\n", rows->empty);
    if (rows->count == 0)
        return;
    rows_layout(rows, width, column_width);
    struct row title = {0};
    bool titled = false;
    for (int i = 0; i < rows->columns; i++) {
        title.cell[i].text = (char *)rows->column[i].title;
        titled |= *rows->column[i].title != '\0';
    }
    if (titled)
        print_row(rows, &title, column_width, out);
    for (int i = 0; i < rows->count; i++)
        print_row(rows, &rows->row[i], column_width, out);
}

int rows_clamp(int number, int least, int most)
{
    if (number < least)
        return least;
    return number > most ? most : number;
}

bool row_holds(const struct rows *rows, const struct row *row, const char *text)
{
    for (int i = 0; i < rows->columns; i++)
        if (row->cell[i].text && strcasestr(row->cell[i].text, text))
            return true;
    return false;
}
