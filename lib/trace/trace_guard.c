/* trace_guard.c: see trace_guard.h. */
#include "lib/trace/trace_guard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    LENGTH_MAX = 64 << 20, /* of a text or a row */
    SQL_LENGTH_MAX = 1 << 20,
    STEPS_PER_LOOK = 20000 /* of SQLite's machine: well below a millisecond */
};

/* A row of a trace takes more than 30 bytes, and a query of a reader a few hundred steps for a row.
 * The rest is for queries of the smallest traces: some seconds. */
static const uint64_t steps_per_byte = 64, steps_least = 200000000;

static uint64_t steps_allowed(const char *path)
{
    char log[4096 + 8];
    struct stat file = {0}, written = {0};
    if (stat(path, &file) < 0)
        file.st_size = 0;
    if (snprintf(log, sizeof log, "%s-wal", path) < (int)sizeof log && stat(log, &written) < 0)
        written.st_size = 0;
    return steps_least + steps_per_byte * (uint64_t)(file.st_size + written.st_size);
}

/* The database may have grown since the query began. */
static int look_at_query(void *context)
{
    struct trace_guard *guard = context;
    guard->steps += STEPS_PER_LOOK;
    if (guard->steps > guard->limit) {
        guard->limit = steps_allowed(guard->path);
        guard->is_exceeded = guard->steps > guard->limit;
    }
    return guard->is_exceeded || (guard->is_stopped && guard->is_stopped(guard->context));
}

static int begin_query(unsigned what, void *context, void *statement, void *text)
{
    struct trace_guard *guard = context;
    (void)what, (void)statement, (void)text;
    guard->steps = 0;
    guard->is_exceeded = false;
    return 0;
}

/* What readers ask for; `cmd/sql` has rules of its own. */
static int authorize_reader(void *context, int action, const char *first, const char *second,
                            const char *database, const char *trigger)
{
    (void)context, (void)first, (void)database, (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_TRANSACTION:
    case SQLITE_PRAGMA: /* of our own texts alone: a database has no statements */
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return strcasecmp(second, "load_extension") ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_UPDATE: /* where a table-valued pragma is declared; never done */
        return strcmp(first, "sqlite_master") ? SQLITE_DENY : SQLITE_OK;
    default:
        return SQLITE_DENY;
    }
}

void trace_guard_connection(sqlite3 *db, struct trace_guard *guard)
{
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, SQL_LENGTH_MAX);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
    guard->limit = steps_allowed(guard->path);
    sqlite3_progress_handler(db, STEPS_PER_LOOK, look_at_query, guard);
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, begin_query, guard);
    sqlite3_set_authorizer(db, authorize_reader, NULL);
}

/* Names are the same in any case, for SQLite as well. A file that is cut off is opened without
 * SQLite's own check that a name is that of its statement, so all statements are looked at. */
static const char find_false_table[] =
    "SELECT name FROM sqlite_master m WHERE (sql LIKE 'CREATE VIRTUAL%' OR (type = 'table' AND "
    "name "
    "NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE TABLE%')) OR (name COLLATE NOCASE "
    "IN ('meta', 'api', 'datatype', 'redop', 'process', 'event', 'string', 'stack', 'module', "
    "'symbol', 'inlined', 'finding', 'finding_side', 'finding_act', 'finding_call', "
    "'finding_comm', 'comm_label', 'ring_position', 'python', 'imported', 'lack', 'member_state', "
    "'wait_state', 'speed_state', 'process_state', 'operation_block', 'dropped', "
    "'operation_digest', 'member_start', 'library', 'setting') AND (type <> 'table' OR EXISTS "
    "(SELECT 1 FROM "
    "pragma_table_xinfo(m.name) WHERE hidden))) LIMIT 1";

int trace_guard_tables(sqlite3 *db, const char *path, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int result = 0;
    if (sqlite3_prepare_v2(db, find_false_table, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        result = error_set(err, "%s is no trace as ddpcheck writes it: '%s' is not a plain table",
                           path, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
#ifdef SQLITE_DBCONFIG_ENABLE_VIEW
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
#endif
    return result;
}
