/* cursor.h: the rows of a query over all databases of a trace. */
#ifndef DDPCHECK_CURSOR_H
#define DDPCHECK_CURSOR_H

#include <sqlite3.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/trace.h"

/* The rows of a query over all databases, one after the other. Parameters are numbers. */
struct cursor {
    struct trace *trace;
    const char *sql;
    const int64_t *parameter;
    int parameters;
    int database; /* the one that the row at hand is from */
    sqlite3_stmt *statement;
};

/* The cursor starts at the first database. `parameter` must outlive it. */
struct cursor cursor_new(struct trace *trace, const char *sql, const int64_t *parameter,
                         int parameters);
/* 1: a row; 0: no more; -1 with err. After 0 and -1 nothing is left to free. */
int cursor_next(struct cursor *cursor, struct error *err);
/* Ends it early. */
void cursor_end(struct cursor *cursor);

int64_t cursor_number(const struct cursor *cursor, int column);
const char *cursor_text(const struct cursor *cursor,
                        int column); /* "" for NULL; valid until the next row */
/* The trace's number of a process that the database calls by the number in `column`; -1 if it is
 * not known. */
int cursor_process(const struct cursor *cursor, int column);

#endif
