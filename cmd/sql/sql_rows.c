/* sql_rows.c: see sql_rows.h. */
#include "cmd/sql/sql_rows.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/text.h"
#include "tui/width.h"

enum { HELD_ROWS = 200, COLUMN_GAP = 2 };

struct sql_rows {
    enum sql_rows_format format;
    FILE *out;
    int columns;
    char **name; /* of each column; for JSON each is there once */
    int *width; /* text: of each column; the sign says where it stands: < 0 left, as all but numbers
                   do */
    char **held; /* text: cells of the rows that wait for the widths, row by row */
    int held_rows;
    bool flowing; /* text: the widths are known */
};

/* A blob as SQL writes it; the caller's. */
static char *blob_text(sqlite3_stmt *statement, int column)
{
    const unsigned char *bytes = sqlite3_column_blob(statement, column);
    int count = sqlite3_column_bytes(statement, column);
    char *text = malloc(2 * (size_t)count + 4);
    if (!text)
        return NULL;
    char *end = stpcpy(text, "x'");
    for (int i = 0; i < count; i++)
        end += sprintf(end, "%02x", bytes[i]);
    strcpy(end, "'");
    return text;
}

/* A cell as text; the caller's. */
static char *cell_text(sqlite3_stmt *statement, int column, const char *null)
{
    int type = sqlite3_column_type(statement, column);
    if (type == SQLITE_BLOB)
        return blob_text(statement, column);
    return strdup(type == SQLITE_NULL ? null
                                      : (const char *)sqlite3_column_text(statement, column));
}

/* Column names can come twice, keys of an object can't: the second is "name:2". */
static char *unique_name(char *const *names, int count, const char *name)
{
    char *unique = strdup(name);
    for (int again = 2, i = 0; unique && i < count; i++)
        if (strcmp(names[i], unique) == 0) {
            free(unique);
            if (asprintf(&unique, "%s:%d", name, again++) < 0)
                return NULL;
            i = -1;
        }
    return unique;
}

static char *copy_column_name(const struct sql_rows *rows, int column, const char *name)
{
    if (rows->format == SQL_ROWS_JSON)
        return unique_name(rows->name, column, name);
    return rows->format == SQL_ROWS_TEXT ? width_clean(name) : strdup(name);
}

struct sql_rows *sql_rows_begin(enum sql_rows_format format, sqlite3_stmt *statement, FILE *out)
{
    struct sql_rows *rows = calloc(1, sizeof *rows);
    if (!rows)
        return NULL;
    rows->format = format;
    rows->out = out;
    rows->columns = sqlite3_column_count(statement);
    rows->name = calloc((size_t)rows->columns + 1, sizeof *rows->name);
    rows->width = calloc((size_t)rows->columns + 1, sizeof *rows->width);
    rows->held = calloc((size_t)rows->columns * HELD_ROWS + 1, sizeof *rows->held);
    bool good = rows->name && rows->width && rows->held;
    for (int i = 0; good && i < rows->columns; i++) {
        const char *name = sqlite3_column_name(statement, i);
        rows->name[i] = name ? copy_column_name(rows, i, name) : NULL;
        good = rows->name[i] != NULL;
    }
    if (!good) {
        rows->columns = 0;
        sql_rows_end(rows);
        return NULL;
    }
    for (int i = 0; format == SQL_ROWS_CSV && i < rows->columns; i++) {
        text_csv(rows->name[i], out);
        putc(i + 1 < rows->columns ? ',' : '\n', out);
    }
    return rows;
}

/* A cell at its place; the last of a row is not padded. */
static void put_cell(const struct sql_rows *rows, int column, const char *text)
{
    int width = abs(rows->width[column]), used = width_of(text);
    bool right = rows->width[column] > 0;
    if (right)
        fprintf(rows->out, "%*s", width > used ? width - used : 0, "");
    fputs(text, rows->out);
    if (column + 1 < rows->columns)
        fprintf(rows->out, "%*s", COLUMN_GAP + (!right && width > used ? width - used : 0), "");
    else
        putc('\n', rows->out);
}

static void put_rule(const struct sql_rows *rows, int column)
{
    for (int i = abs(rows->width[column]); i > 0; i--)
        putc('-', rows->out);
    fputs(column + 1 < rows->columns ? "  " : "\n", rows->out);
}

/* Writes the head and the rows that waited; the widths are those of these. */
static void start_flowing(struct sql_rows *rows)
{
    for (int column = 0; column < rows->columns; column++) {
        int width = width_of(rows->name[column]);
        for (int row = 0; row < rows->held_rows; row++) {
            int used = width_of(rows->held[row * rows->columns + column]);
            width = used > width ? used : width;
        }
        rows->width[column] = rows->width[column] < 0 ? -width : width;
    }
    for (int column = 0; column < rows->columns; column++)
        put_cell(rows, column, rows->name[column]);
    for (int column = 0; column < rows->columns; column++)
        put_rule(rows, column);
    for (int i = 0; i < rows->held_rows * rows->columns; i++) {
        put_cell(rows, i % rows->columns, rows->held[i]);
        free(rows->held[i]);
    }
    rows->held_rows = 0;
    rows->flowing = true;
}

static int add_row_text(struct sql_rows *rows, sqlite3_stmt *statement)
{
    if (!rows->flowing && rows->held_rows == HELD_ROWS)
        start_flowing(rows);
    for (int column = 0; column < rows->columns; column++) {
        char *raw = cell_text(statement, column, "NULL"), *text = raw ? width_clean(raw) : NULL;
        free(raw);
        if (!text) { /* of a row that waits all cells are there or none */
            for (int i = 0; i < column && !rows->flowing; i++)
                free(rows->held[rows->held_rows * rows->columns + i]);
            return -1;
        }
        if (rows->flowing) {
            put_cell(rows, column, text);
            free(text);
            continue;
        }
        int type = sqlite3_column_type(statement, column);
        if (type != SQLITE_INTEGER && type != SQLITE_FLOAT && type != SQLITE_NULL)
            rows->width[column] = -1;
        rows->held[rows->held_rows * rows->columns + column] = text;
    }
    rows->held_rows += !rows->flowing;
    return 0;
}

static int add_csv(struct sql_rows *rows, sqlite3_stmt *statement)
{
    for (int column = 0; column < rows->columns; column++) {
        char *text = cell_text(statement, column, "");
        if (!text)
            return -1;
        text_csv(text, rows->out);
        putc(column + 1 < rows->columns ? ',' : '\n', rows->out);
        free(text);
    }
    return 0;
}

static json_t *cell_json(sqlite3_stmt *statement, int column)
{
    double number;
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
        return json_null();
    case SQLITE_INTEGER:
        return json_integer(sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT:
        number = sqlite3_column_double(statement, column);
        return isfinite(number) ? json_real(number) : json_null();
    }
    char *text = cell_text(statement, column, "");
    json_t *value = text ? json_string(text) : NULL;
    if (text && !value) { /* no UTF-8 */
        char *clean = width_clean(text);
        value = clean ? json_string(clean) : NULL;
        free(clean);
    }
    free(text);
    return value;
}

static int add_json(struct sql_rows *rows, sqlite3_stmt *statement)
{
    json_t *object = json_object();
    bool good = object != NULL;
    for (int column = 0; good && column < rows->columns; column++)
        good = json_object_set_new_nocheck(object, rows->name[column],
                                           cell_json(statement, column)) == 0;
    good = good && json_dumpf(object, rows->out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0;
    putc('\n', rows->out);
    json_decref(object);
    return good ? 0 : -1;
}

int sql_rows_add(struct sql_rows *rows, sqlite3_stmt *statement)
{
    switch (rows->format) {
    case SQL_ROWS_TEXT:
        return add_row_text(rows, statement);
    case SQL_ROWS_CSV:
        return add_csv(rows, statement);
    case SQL_ROWS_JSON:
        return add_json(rows, statement);
    }
    return -1;
}

void sql_rows_end(struct sql_rows *rows)
{
    if (!rows)
        return;
    if (rows->format == SQL_ROWS_TEXT && !rows->flowing && rows->columns > 0)
        start_flowing(rows);
    for (int i = 0; rows->name && rows->name[i]; i++)
        free(rows->name[i]);
    free(rows->name);
    free(rows->width);
    free(rows->held);
    free(rows);
}
