/* sql_run.c: see sql_run.h. */
#include "cmd/sql/sql_run.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* Those that take an argument and only say something. */
static const char *const asking_pragmas[] = {
    "table_info",  "table_xinfo",      "table_list",      "index_list",  "index_info",
    "index_xinfo", "foreign_key_list", "integrity_check", "quick_check", NULL};

static bool only_asks(const char *pragma, const char *argument)
{
    int i = 0;
    while (argument && asking_pragmas[i] && strcasecmp(pragma, asking_pragmas[i]))
        i++;
    return !argument || asking_pragmas[i];
}

/* What reads is allowed, and nothing else: a read-only connection would still attach other files,
 * VACUUM INTO, which attaches, make new ones, and pragmas undo the protection. */
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    (void)context;
    (void)database;
    (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return strcasecmp(second, "load_extension") ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
        return only_asks(first, second) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_UPDATE: /* asked for where a table-valued pragma is declared; never done */
        return strcmp(first, "sqlite_master") ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

int sql_only_read(sqlite3 *database, struct error *err)
{
    /* A user's own query may use views, and take as long as it likes. */
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 1, NULL);
    sqlite3_progress_handler(database, 0, NULL, NULL);
    if (sqlite3_exec(database, "PRAGMA query_only = ON", NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_set_authorizer(database, authorize, NULL) == SQLITE_OK)
        return 0;
    return error_set(err, "can't protect the trace from writing: %s", sqlite3_errmsg(database));
}

/* The statement's first word, to name it. */
static int word_length(const char *text)
{
    return (int)strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

static const char *skip_blanks(const char *text)
{
    return text + strspn(text, " \t\r\n;");
}

static int fail_sql(sqlite3 *database, const char *text, struct error *err)
{
    int code = sqlite3_errcode(database);
    if (code == SQLITE_INTERRUPT)
        return error_set(err, "interrupted");
    if (code == SQLITE_AUTH)
        return error_set(err, "%.*s: ddpcheck sql only reads the trace", word_length(text), text);
    int at = sqlite3_error_offset(database);
    const char *message = sqlite3_errmsg(database);
    if (!strcmp(message, "incomplete input"))
        return error_set(err, "the query ends before it is complete: %s", text);
    const char *todo = strncmp(message, "no such ", strlen("no such "))
                           ? ""
                           : "; .views lists the views and tables with their columns";
    if (at < 0)
        return error_set(err, "%s%s", message, todo);
    int near = (int)strcspn(text + at, "\n");
    return error_set(err, "%s, at \"%.*s\"%s", message, near < 40 ? near : 40, text + at, todo);
}

static int run_statement(sqlite3 *database, sqlite3_stmt *statement, const char *text,
                         enum sql_rows_format format, FILE *out, struct error *err)
{
    if (!sqlite3_stmt_readonly(statement))
        return error_set(err, "%.*s: ddpcheck sql only reads the trace", word_length(text), text);
    struct sql_rows *rows = NULL;
    if (sqlite3_column_count(statement) > 0 && !(rows = sql_rows_begin(format, statement, out)))
        return error_set(err, OUT_OF_MEMORY);
    int code, result = 0;
    while (result == 0 && (code = sqlite3_step(statement)) == SQLITE_ROW)
        result = sql_rows_add(rows, statement);
    if (result < 0)
        error_set(err, OUT_OF_MEMORY ", or the output can't be written");
    else if (code != SQLITE_DONE)
        result = fail_sql(database, text, err);
    sql_rows_end(rows);
    return result;
}

int sql_run(sqlite3 *database, const char *text, enum sql_rows_format format, FILE *out,
            struct error *err)
{
    int result = 0;
    for (text = skip_blanks(text); *text && result == 0; text = skip_blanks(text)) {
        sqlite3_stmt *statement = NULL;
        const char *rest = text;
        if (sqlite3_prepare_v2(database, text, -1, &statement, &rest) != SQLITE_OK)
            return fail_sql(database, text, err);
        if (statement) /* else a comment */
            result = run_statement(database, statement, text, format, out, err);
        sqlite3_finalize(statement);
        text = rest;
    }
    return result;
}
