/* trace_source.c: reads the events of one trace database in order. */
#include "lib/trace/trace_source.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/array.h"
#include "lib/trace/store_internal.h"
#include "lib/trace/trace.h"

enum { BUSY_TIMEOUT_MS = 5000 };

int source_failed(struct trace_source *source, const char *doing, struct error *err)
{
    int code = sqlite3_extended_errcode(source->db);
    if (source->guard->is_exceeded)
        return error_set(err,
                         "%s is no trace as ddpcheck writes it: a query takes more than a database "
                         "of its size can need",
                         source->path);
    if ((code & 0xff) == SQLITE_NOTADB)
        return error_set(err, "%s is not a trace: it is no SQLite database", source->path);
    if (source->cut_at && source->last == 0)
        return error_set(err,
                         "%s was cut off at byte %" PRId64
                         ", before its first event: if it is a copy, copy it again, with %s-wal",
                         source->path, source->cut_at, source->path);
    if (source->cut_at)
        return error_set(err,
                         "%s was cut off at byte %" PRId64 ": can't read on after event %" PRId64
                         " (what came before is good)",
                         source->path, source->cut_at, source->last);
    if ((code & 0xff) == SQLITE_CORRUPT)
        return error_set(
            err, "%s is damaged: can't read on after event %" PRId64 " (what came before is good)",
            source->path, source->last);
    return error_set(err, "can't %s %s: %s", doing, source->path, sqlite3_errmsg(source->db));
}

sqlite3_stmt *source_prepare(struct trace_source *source, sqlite3_stmt **statement, const char *sql)
{
    if (*statement)
        sqlite3_reset(*statement);
    else
        sqlite3_prepare_v3(source->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    return *statement;
}

/* One integer, or -1 with SQLite's code in *code. */
static int64_t query_integer(sqlite3 *db, const char *sql, int *code)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = -1;
    *code = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (*code == SQLITE_OK)
        *code = sqlite3_step(statement);
    if (*code == SQLITE_ROW) {
        value = sqlite3_column_int64(statement, 0);
        *code = SQLITE_OK;
    }
    sqlite3_finalize(statement);
    return value;
}

/* "file:" URI of a path, with what URIs treat as special escaped. NULL when memory is short. */
static char *file_uri(const char *path, const char *parameters)
{
    char *uri = malloc(3 * strlen(path) + strlen(parameters) + 8);
    if (!uri)
        return NULL;
    char *to = uri + sprintf(uri, "file:");
    for (; *path; path++)
        to += isalnum((unsigned char)*path) || strchr("/._-", *path)
                  ? sprintf(to, "%c", *path)
                  : sprintf(to, "%%%02x", (unsigned char)*path);
    strcpy(to, parameters);
    return uri;
}

static int open_with(struct trace_source *source, const char *parameters)
{
    char *uri = file_uri(source->path, parameters);
    if (!uri)
        return SQLITE_NOMEM;
    sqlite3_close(source->db);
    source->db = NULL;
    int code = sqlite3_open_v2(uri, &source->db,
                               SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    free(uri);
    if (code != SQLITE_OK)
        return code;
    sqlite3_busy_timeout(source->db, BUSY_TIMEOUT_MS);
    trace_guard_connection(source->db, source->guard);
    query_integer(source->db, "SELECT count(*) FROM sqlite_master", &code);
    return code;
}

static bool has_log(const char *path)
{
    char log[PATH_MAX];
    struct stat status;
    return snprintf(log, sizeof log, "%s-wal", path) < (int)sizeof log && stat(log, &status) == 0 &&
           status.st_size > 0;
}

/* The file's size if it does not end with a page, else 0. SQLite would take the rest of the page
 * for zeroes. */
static int64_t partial_page(struct trace_source *source)
{
    struct stat status;
    int code;
    int64_t page = query_integer(source->db, "PRAGMA page_size", &code);
    return code == SQLITE_OK && page > 0 && stat(source->path, &status) == 0 &&
                   status.st_size % page
               ? status.st_size
               : 0;
}

/* Opens the file as it can be opened: usual; with no place for the log's index (read-only
 * directory); cut off. */
static int open_database(struct trace_source *source, struct error *err)
{
    int code = open_with(source, "?mode=ro");
    if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) {
        if (has_log(source->path))
            return error_set(err,
                             "can't read %s: its directory is read-only and the last events are "
                             "still in %s-wal; "
                             "copy both to a directory that you can write to",
                             source->path, source->path);
        code = open_with(source, "?mode=ro&immutable=1");
    }
    if (code == SQLITE_CORRUPT) { /* SQLite refuses a file that is shorter than its header says,
                                     unless asked to recover */
        struct stat status;
        sqlite3_exec(source->db, "PRAGMA writable_schema = ON", NULL, NULL, NULL);
        query_integer(source->db, "SELECT count(*) FROM sqlite_master", &code);
        source->cut_at = stat(source->path, &status) == 0 ? status.st_size : 0;
    }
    if (code == SQLITE_OK && !source->cut_at &&
        !has_log(source->path)) /* the log may hold what the file lacks */
        source->cut_at = partial_page(source);
    if (!source->cut_at)
        sqlite3_db_config(source->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (code == SQLITE_OK)
        return trace_guard_tables(source->db, source->path, err);
    int number = source->db ? sqlite3_system_errno(source->db) : ENOMEM;
    if ((code & 0xff) == SQLITE_CANTOPEN && number)
        return error_unreadable(err, "", source->path, number);
    return source_failed(source, "read", err);
}

static int check_version(struct trace_source *source, struct error *err)
{
    int code;
    int64_t application = query_integer(source->db, "PRAGMA application_id", &code);
    int64_t version = query_integer(source->db, "PRAGMA user_version", &code);
    if (application == 0 &&
        query_integer(source->db, "SELECT count(*) FROM sqlite_master", &code) == 0)
        return error_set(err, "%s is not a trace: it is empty", source->path);
    if (application != STORE_APPLICATION_ID)
        return error_set(err, "%s is not a trace: it is a database of another program",
                         source->path);
    return store_check_version(source->path, version, err);
}

int source_open(struct trace_source *source, const char *path, struct error *err)
{
    struct stat status;
    *source =
        (struct trace_source){.path = strdup(path), .guard = calloc(1, sizeof *source->guard)};
    if (!source->path || !source->guard) {
        source_close(source);
        return error_memory(err, "can't read %s", path);
    }
    source->guard->path = source->path;
    if (strstr(path, "://")) /* an address of a hub has a token, which is not printed */
        error_set(err, "can't read a trace from an address here; report, tui, export, diff and sql "
                       "take that of a hub (nats://...)");
    else if (stat(path, &status) < 0 && errno == ENOENT)
        error_set(err,
                  "there is no trace %s; name a directory into which 'ddpcheck run' recorded, or a "
                  "database of one (*.db)",
                  path);
    else if (stat(path, &status) < 0)
        error_unreadable(err, "", path, errno);
    else if (!S_ISREG(status.st_mode))
        error_set(err, "%s is not a trace: it is no regular file", path);
    else if (open_database(source, err) == 0 && check_version(source, err) == 0)
        return 0;
    source_close(source);
    return -1;
}

void source_close(struct trace_source *source)
{
    sqlite3_stmt *statement;
    while (source->db && (statement = sqlite3_next_stmt(source->db, NULL)))
        sqlite3_finalize(statement);
    sqlite3_close(source->db);
    free(source->guard);
    free(source->path);
    free(source->processes);
    free(source->dropped);
    *source = (struct trace_source){0};
}

int source_refresh(struct trace_source *source, struct error *err)
{
    int code;
    if (source->damaged)
        return 0;
    if (source->events)
        sqlite3_reset(source->events);
    source->limit = query_integer(source->db, "SELECT coalesce(max(seq), 0) FROM event", &code);
    if (code == SQLITE_CORRUPT) { /* the last page is gone: read up to where it breaks */
        source->limit = INT64_MAX;
        code = SQLITE_OK;
    }
    if (code != SQLITE_OK)
        return source_failed(source, "read", err);
    return source_read_dropped(source, err);
}

static void column_copy(char *to, size_t bytes, sqlite3_stmt *statement, int column)
{
    const unsigned char *text = sqlite3_column_text(statement, column);
    snprintf(to, bytes, "%s", text ? (const char *)text : "");
}

static void read_process(sqlite3_stmt *statement, struct process_info *info)
{
    *info = (struct process_info){
        .pid = sqlite3_column_int(statement, 1),
        .start_ticks = (uint64_t)sqlite3_column_int64(statement, 2),
        .realtime_ns = (uint64_t)sqlite3_column_int64(statement, 4),
        .monotonic_ns = (uint64_t)sqlite3_column_int64(statement, 5),
        .rank = sqlite3_column_int(statement, 6),
        .local_rank = sqlite3_column_int(statement, 7),
        .world_size = sqlite3_column_int(statement, 8),
        .restart = sqlite3_column_int(statement, 9),
        .uid = (uint32_t)sqlite3_column_int64(statement, 10),
        .nccl_version = sqlite3_column_int(statement, 11),
        .cuda_runtime_version = sqlite3_column_int(statement, 12),
        .cuda_driver_version = sqlite3_column_int(statement, 13),
    };
    info->lacks = (uint32_t)sqlite3_column_int64(statement, 19);
    column_copy(info->boot_id, sizeof info->boot_id, statement, 3);
    column_copy(info->host, sizeof info->host, statement, 14);
    column_copy(info->launcher, sizeof info->launcher, statement, 15);
    column_copy(info->job, sizeof info->job, statement, 16);
    column_copy(info->program, sizeof info->program, statement, 17);
    column_copy(info->command, sizeof info->command, statement, 18);
}

static const char process_query[] =
    "SELECT id, pid, start_ticks, boot_id, realtime_ns, monotonic_ns, rank, local_rank, "
    "world_size, restart, uid, nccl_version, cuda_runtime_version, cuda_driver_version, host, "
    "launcher, job, program, command, coalesce(i.lacks, 0) FROM process LEFT JOIN imported i ON "
    "i.process = id WHERE id >= ? ORDER BY id";

int source_read_processes(struct trace_source *source,
                          int (*add)(void *context, const struct process_info *info), void *context,
                          struct error *err)
{
    sqlite3_stmt *statement = NULL;
    if (source->damaged)
        return 0;
    int code = sqlite3_prepare_v2(source->db, process_query, -1, &statement, NULL);
    if (code != SQLITE_OK)
        return source_failed(source, "read the processes of", err);
    sqlite3_bind_int(statement, 1, source->process_count);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        struct process_info info;
        read_process(statement, &info);
        int number = -1;
        if (ARRAY_ADD(source->processes, source->process_count))
            number = sqlite3_column_int(statement, 0) == source->process_count ? add(context, &info)
                                                                               : -2;
        if (number < 0) {
            sqlite3_finalize(statement);
            return error_set(err,
                             number == -2
                                 ? "%s is damaged: its processes are not numbered 0, 1, 2, ..."
                                 : "can't read %s: " OUT_OF_MEMORY,
                             source->path);
        }
        source->processes[source->process_count++] = number;
    }
    int result = code == SQLITE_DONE ? 0 : source_failed(source, "read the processes of", err);
    sqlite3_finalize(statement);
    return result;
}

static void read_record(sqlite3_stmt *row, struct record *record)
{
    record->time_ns = (uint64_t)sqlite3_column_int64(row, 2);
    record->serial = (uint64_t)sqlite3_column_int64(row, 3);
    record->api = (uint16_t)sqlite3_column_int(row, 4);
    record->phase = (uint8_t)sqlite3_column_int(row, 5);
    record->reserved = 0;
    record->flags = (uint16_t)sqlite3_column_int(row, 6);
    record->thread = (uint32_t)sqlite3_column_int64(row, 7);
    record->result = sqlite3_column_int(row, 8);
    record->device = (int16_t)sqlite3_column_int(row, 9);
    record->stack = (uint64_t)sqlite3_column_int64(row, 10);
    record->stream = (uint64_t)sqlite3_column_int64(row, 11);
    for (int i = 0; i < 10; i++)
        record->word[i] = (uint64_t)sqlite3_column_int64(row, 12 + i);
}

static int query_events(struct trace_source *source, struct error *err)
{
    if (!source_prepare(source, &source->events,
                        "SELECT seq, process, time_ns, serial, api, phase, flags, thread, "
                        "result, device, stack, stream, "
                        "w0, w1, w2, w3, w4, w5, w6, w7, w8, w9 FROM event WHERE seq > ? AND "
                        "seq <= ? ORDER BY seq"))
        return source->damaged = true, source_failed(source, "read", err);
    sqlite3_bind_int64(source->events, 1, source->last);
    sqlite3_bind_int64(source->events, 2, source->limit);
    return 0;
}

/* The first event of a query. What is dropped is read in the same transaction: the collector may
 * drop more at any moment. Returns SQLite's code, or 0 if a notice of that became head. */
static int step_first(struct trace_source *source, struct error *err)
{
    sqlite3_exec(source->db, "BEGIN", NULL, NULL, NULL);
    int code = 0;
    if (source_read_dropped(source, err) < 0 || !source_fetch_dropped(source))
        code = sqlite3_step(source->events);
    sqlite3_exec(source->db, "COMMIT", NULL, NULL, NULL);
    return code;
}

int source_fetch(struct trace_source *source, struct error *err)
{
    if (source_fetch_dropped(source))
        return 1;
    if (source->damaged || (source->last >= source->limit && !source->cut_at))
        return 0;
    bool begins = !source->events || !sqlite3_stmt_busy(source->events);
    if (begins && query_events(source, err) < 0)
        return -1;
    int code = begins ? step_first(source, err) : sqlite3_step(source->events);
    if (!code)
        return 1;
    /* Cells in the missing part of a page read as zeroes: their number is too low. */
    if (code == SQLITE_ROW && sqlite3_column_int64(source->events, 0) <= source->last) {
        source->damaged = true;
        sqlite3_reset(source->events);
        return source->cut_at
                   ? source_failed(source, "read", err)
                   : error_set(err,
                               "%s is damaged: its events are out of order after event %" PRId64,
                               source->path, source->last);
    }
    if (code == SQLITE_ROW) {
        source->last = sqlite3_column_int64(source->events, 0);
        source->head_process = sqlite3_column_int(source->events, 1);
        read_record(source->events, &source->head);
        if (source->last >= source->limit && !source->cut_at)
            sqlite3_reset(source->events); /* an open query would hold this reader, and the log, at
                                              what it saw first */
        if (source->head_process >= 0 && source->head_process < source->process_count)
            return 1;
        source->damaged = true;
        return error_set(
            err, "%s is damaged: event %" PRId64 " belongs to process %d, which it does not know",
            source->path, source->last, source->head_process);
    }
    /* Where a file was cut at the right place, everything that SQLite was asked for looks whole. */
    source->damaged = code != SQLITE_DONE || source->cut_at;
    int result = source->damaged ? source_failed(source, "read", err) : 0;
    sqlite3_reset(source->events);
    if (!source->damaged)
        source->limit = source->last;
    return result;
}

int source_unrecorded(struct trace_source *source)
{
    int code;
    return (int)query_integer(
        source->db,
        "SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta WHERE key = 'unrecorded'",
        &code);
}

char *source_meta(struct trace_source *source, const char *key)
{
    sqlite3_stmt *statement;
    char *value = NULL;
    if (sqlite3_prepare_v2(source->db, "SELECT value FROM meta WHERE key = ?", -1, &statement,
                           NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
        value = strdup((const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return value;
}

bool source_complete(struct trace_source *source)
{
    int code;
    return !source->damaged && !source->cut_at &&
           query_integer(source->db, "SELECT count(*) FROM meta WHERE key = 'ended'", &code) == 1;
}

int source_settle(struct trace_source *source, struct error *err)
{
    if (source->cut_at || has_log(source->path) || !source_complete(source))
        return 0;
    if (open_with(source, "?mode=ro&immutable=1") != SQLITE_OK)
        return source_failed(source, "read", err);
    sqlite3_db_config(source->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return trace_guard_tables(source->db, source->path, err);
}

uint64_t source_hang_after_ns(struct trace_source *source)
{
    int code;
    int64_t value = query_integer(
        source->db, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'hang_after_ns'", &code);
    return code == SQLITE_OK && value > 0 ? (uint64_t)value : 0;
}

uint64_t source_alive_ns(struct trace_source *source)
{
    int code;
    int64_t value = query_integer(
        source->db, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'alive_ns'", &code);
    return code == SQLITE_OK && value > 0 ? (uint64_t)value : 0;
}

void source_visit_clocks(struct trace_source *source,
                         void (*visit)(void *context, const struct trace_clock *clock),
                         void *context)
{
    static const char query[] = "SELECT substr(key, 7), CAST(value AS INTEGER) FROM meta "
                                "WHERE key GLOB 'clock *' ORDER BY key";
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(source->db, query, -1, &statement, NULL) != SQLITE_OK)
        return;
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const char *host = (const char *)sqlite3_column_text(statement, 0);
        const struct trace_clock clock = {host, sqlite3_column_int64(statement, 1), true};
        if (host && clock.offset_ns) /* 0: it was set right */
            visit(context, &clock);
    }
    sqlite3_finalize(statement);
}

bool source_is_job(struct trace_source *source)
{
    int code;
    int64_t count = query_integer(
        source->db, "SELECT count(*) FROM meta WHERE key = 'scope' AND value = 'job'", &code);
    return code == SQLITE_OK && count > 0;
}
