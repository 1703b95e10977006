/* cursor.c: runs a query over one database after the other. */
#include "lib/trace/cursor.h"

struct cursor cursor_new(struct trace *trace, const char *sql, const int64_t *parameter,
                         int parameters)
{
    return (struct cursor){.trace = trace,
                           .sql = sql,
                           .parameter = parameter,
                           .parameters = parameters,
                           .database = -1};
}

void cursor_end(struct cursor *cursor)
{
    sqlite3_finalize(cursor->statement);
    cursor->statement = NULL;
}

static int failed(struct cursor *cursor, struct error *err)
{
    sqlite3 *db = trace_database(cursor->trace, cursor->database);
    const char *path = trace_database_path(cursor->trace, cursor->database);
    int code = sqlite3_errcode(db) & 0xff;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        error_set(err, "%s is locked by another program; trying again", path);
    else
        error_set(err, "can't read %s: %s", path, sqlite3_errmsg(db));
    cursor_end(cursor);
    return -1;
}

/* Begins with the next database. 1, 0 if there is none, -1 with err. */
static int advance(struct cursor *cursor, struct error *err)
{
    cursor_end(cursor);
    if (++cursor->database >= trace_database_count(cursor->trace))
        return 0;
    if (sqlite3_prepare_v2(trace_database(cursor->trace, cursor->database), cursor->sql, -1,
                           &cursor->statement, NULL) != SQLITE_OK)
        return failed(cursor, err);
    for (int i = 0; i < cursor->parameters; i++)
        sqlite3_bind_int64(cursor->statement, i + 1, cursor->parameter[i]);
    return 1;
}

int cursor_next(struct cursor *cursor, struct error *err)
{
    for (;;) {
        int code = cursor->statement ? sqlite3_step(cursor->statement) : SQLITE_DONE;
        if (code == SQLITE_ROW)
            return 1;
        if (code != SQLITE_DONE)
            return failed(cursor, err);
        int result = advance(cursor, err);
        if (result <= 0)
            return result;
    }
}

int64_t cursor_number(const struct cursor *cursor, int column)
{
    return sqlite3_column_int64(cursor->statement, column);
}

const char *cursor_text(const struct cursor *cursor, int column)
{
    const char *text = (const char *)sqlite3_column_text(cursor->statement, column);
    return text ? text : "";
}

int cursor_process(const struct cursor *cursor, int column)
{
    return trace_process_of(cursor->trace, cursor->database,
                            sqlite3_column_int(cursor->statement, column));
}
