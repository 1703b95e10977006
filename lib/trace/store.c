/* store.c: creates and opens the trace database and writes its tables. */
#include "lib/trace/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/network_file_system.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"
#include "lib/trace/store_internal.h"
#include "schema_sql.h"

enum { BUSY_TIMEOUT_MS = 10000 };

/* The rows of a piece that may go: those that rings drop first as well (interpose/ring/emit.h). */
#define DROPPED_ROWS                                            \
    "FROM event WHERE seq > ?1 AND seq <= ?2 AND time_ns < ?3 " \
    "AND api IN (SELECT number FROM api WHERE class IN ('copy', 'launch', 'range')) "

static const char *const statement_sql[STORE_STATEMENTS] = {
    [STORE_BEGIN] = "BEGIN IMMEDIATE",
    [STORE_COMMIT] = "COMMIT",
    [STORE_EVENTS] = store_insert_events,
    [STORE_PROCESS_FIND] = "SELECT id FROM process WHERE boot_id = ? AND pid = ? AND start_ticks = "
                           "? AND monotonic_ns = ?",
    [STORE_PROCESS_SHIFT] = "UPDATE process SET realtime_ns = realtime_ns + ? WHERE id = ?",
    [STORE_PROCESS_ADD] =
        "INSERT INTO process VALUES((SELECT coalesce(max(id) + 1, 0) FROM process),"
        "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_POSITION_SET] = "INSERT OR REPLACE INTO ring_position VALUES(?,?,?)",
    [STORE_POSITION_GET] = "SELECT position FROM ring_position WHERE process = ? AND ring = ?",
    [STORE_META_SET] = "INSERT OR REPLACE INTO meta VALUES(?,?)",
    [STORE_META_REMOVE] = "DELETE FROM meta WHERE key = ?",
    [STORE_META_GET] = "SELECT value FROM meta WHERE key = ?",
    /* Pieces of one string come in order; one that doesn't fit (lost before it, or said twice)
       changes nothing. */
    [STORE_STRING_START] = "INSERT OR IGNORE INTO string VALUES(?,?,?,?)",
    [STORE_STRING_APPEND] =
        "UPDATE string SET text = CAST(CAST(text AS BLOB) || ?5 AS TEXT) "
        "WHERE process = ?1 AND id = ?2 AND bytes = ?3 AND length(CAST(text AS BLOB)) = ?4",
    [STORE_FRAME] = "INSERT OR IGNORE INTO stack VALUES(?,?,?,?)",
    [STORE_PYTHON] = "INSERT OR IGNORE INTO python VALUES(?,?,?,?,?,?,?)",
    [STORE_MODULE] = "INSERT OR IGNORE INTO module(process, base, start, \"end\", path, build_id) "
                     "VALUES(?,?,?,?,?,?)",
    [STORE_LIBRARY] = "INSERT OR REPLACE INTO library SELECT process, text, ?3 FROM string "
                      "WHERE process = ?1 AND id = ?2",
    [STORE_SETTING] = "INSERT OR REPLACE INTO setting SELECT ?1, n.text, (SELECT v.text FROM "
                      "string v WHERE v.process = ?1 AND v.id = ?3), ?4 FROM string n "
                      "WHERE n.process = ?1 AND n.id = ?2",
    [STORE_SYMBOL] = "INSERT OR REPLACE INTO symbol VALUES(?,?,?,?,?,?)",
    [STORE_INLINED] = "INSERT OR REPLACE INTO inlined VALUES(?,?,?,?,?,?)",
    [STORE_FINDING] = "INSERT OR REPLACE INTO finding VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_SIDES_REMOVE] = "DELETE FROM finding_side WHERE finding = ?",
    [STORE_ACTS_REMOVE] = "DELETE FROM finding_act WHERE finding = ?",
    [STORE_CALLS_REMOVE] = "DELETE FROM finding_call WHERE finding = ?",
    [STORE_ACT] = "INSERT INTO finding_act VALUES(?,?,?,?,?,?,?,?,?)",
    [STORE_CALL] = "INSERT INTO finding_call VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_TITLE] = "INSERT OR REPLACE INTO finding_comm VALUES(?,?)",
    [STORE_MEMBER] =
        "INSERT OR REPLACE INTO member_state VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_LABEL] = "INSERT OR REPLACE INTO comm_label VALUES(?,?)",
    [STORE_WAITS_REMOVE] = "DELETE FROM wait_state",
    [STORE_WAIT] = "INSERT INTO wait_state VALUES(?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_SPEED_REMOVE] = "DELETE FROM speed_state",
    [STORE_SPEED] = "INSERT INTO speed_state VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    [STORE_LOST] = "INSERT INTO process_state(process, lost_control, lost_bulk) VALUES(?1,?2,?3) "
                   "ON CONFLICT(process) DO UPDATE SET lost_control = ?2, lost_bulk = ?3",
    [STORE_END] = "INSERT INTO process_state(process, ended, how, value, out_of_memory, end_ns) "
                  "VALUES(?1,1,?2,?3,?4,?5) "
                  "ON CONFLICT(process) DO UPDATE SET ended = 1, how = ?2, value = ?3, "
                  "out_of_memory = ?4, end_ns = ?5",
    [STORE_BLOCK] = "INSERT OR IGNORE INTO operation_block VALUES(?,?,?,?,?,0)",
    [STORE_BLOCK_HASH] =
        "UPDATE operation_block SET hash = ? WHERE comm = ? AND rank = ? AND block = ?",
    [STORE_IMPORTED] = "INSERT OR IGNORE INTO imported VALUES(?,?,?,?,?)",
    [STORE_PAGES] = "PRAGMA page_count",
    [STORE_UNUSED_PAGES] = "PRAGMA freelist_count",
    [STORE_PAGE_BYTES] = "PRAGMA page_size",
    [STORE_LAST_ROW] = "SELECT coalesce(max(seq), 0) FROM event",
    [STORE_TIME_OF_ROW] = "SELECT time_ns FROM event WHERE seq >= ? ORDER BY seq LIMIT 1",
    [STORE_DROPPED_CUDA] = "SELECT coalesce(max(seq), 0) FROM dropped WHERE what = 'cuda'",
    [STORE_DROPPED_CALLS] = "SELECT coalesce(max(seq), 0) FROM dropped WHERE what = 'calls'",
    [STORE_LAST_FINDING] =
        "SELECT coalesce(max(id), 0) FROM finding WHERE EXISTS (SELECT 1 FROM dropped)",
    [STORE_OLD_FINDINGS] = "SELECT code, severity, certainty, comm, fingerprint FROM finding "
                           "WHERE id <= ? AND state = 'open'",
    [STORE_DROP_NOTE] =
        "INSERT INTO dropped SELECT process, 'cuda', count(*), min(time_ns), max(time_ns), "
        "?2 " DROPPED_ROWS
        "GROUP BY process ON CONFLICT(process, what) DO UPDATE SET records = records + "
        "excluded.records, first_ns = min(first_ns, excluded.first_ns), "
        "last_ns = max(last_ns, excluded.last_ns), seq = excluded.seq",
    [STORE_DROP] = "DELETE " DROPPED_ROWS,
    [STORE_SIDE] = "INSERT INTO finding_side VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
};

int store_failed(struct store *store, struct error *err)
{
    store->failure = sqlite3_extended_errcode(store->db);
    if ((store->failure & 0xff) == SQLITE_FULL)
        return error_set(err, "no space left for %s; free some and it goes on", store->path);
    return error_set(err, "can't write %s: %s", store->path, sqlite3_errmsg(store->db));
}

bool store_may_retry(const struct store *store)
{
    switch (store->failure & 0xff) {
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
        return true;
    case SQLITE_IOERR: /* ENOSPC shows so where the log's index can't grow */
        return store->failure == SQLITE_IOERR_SHMSIZE || store->failure == SQLITE_IOERR_SHMMAP ||
               store->failure == SQLITE_IOERR_WRITE || store->failure == SQLITE_IOERR_FSYNC;
    }
    return false;
}

bool store_is_damaged(const struct store *store)
{
    int code = store->failure & 0xff;
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

sqlite3_stmt *store_prepare(struct store *store, enum store_statement which, struct error *err)
{
    sqlite3_stmt **statement = &store->statement[which];
    if (*statement)
        sqlite3_reset(*statement);
    else if (sqlite3_prepare_v3(store->db, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT,
                                statement, NULL) != SQLITE_OK)
        store_failed(store, err);
    return *statement;
}

int store_run(struct store *store, sqlite3_stmt *statement, struct error *err)
{
    int code = sqlite3_step(statement);
    if (code != SQLITE_DONE && code != SQLITE_ROW) {
        store_failed(store, err);
        sqlite3_reset(statement);
        return -1;
    }
    sqlite3_reset(statement);
    return 0;
}

static int execute(struct store *store, const char *sql, struct error *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0
                                                                       : store_failed(store, err);
}

static int pragma(struct store *store, const char *sql, long long *value, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    *value = 0;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return store_failed(store, err);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        *value = sqlite3_column_int64(statement, 0);
    int result = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_failed(store, err);
    sqlite3_finalize(statement);
    return result;
}

/* The tables that say what numbers mean. */
static int fill_names(struct store *store, struct error *err)
{
    static const char *const classes[] = {
        [CLASS_NONE] = "none",     [CLASS_COLLECTIVE] = "collective",
        [CLASS_P2P] = "p2p",       [CLASS_GROUP] = "group",
        [CLASS_COMM] = "comm",     [CLASS_REDOP] = "redop",
        [CLASS_QUERY] = "query",   [CLASS_WAIT] = "wait",
        [CLASS_STREAM] = "stream", [CLASS_EVENT] = "event",
        [CLASS_MEMORY] = "memory", [CLASS_DEVICE] = "device",
        [CLASS_COPY] = "copy",     [CLASS_LAUNCH] = "launch",
        [CLASS_GRAPH] = "graph",   [CLASS_RANGE] = "range",
        [CLASS_NOTICE] = "notice",
    };
    char sql[256];
    for (unsigned api = 0; api < API_COUNT; api++) {
        if (api_class_of(api) == CLASS_NONE)
            continue;
        snprintf(sql, sizeof sql, "INSERT INTO api VALUES(%u, '%s', '%s')", api, api_name(api),
                 classes[api_class_of(api)]);
        if (execute(store, sql, err) < 0)
            return -1;
    }
    for (unsigned type = 0; type < TYPE_COUNT; type++) {
        snprintf(sql, sizeof sql, "INSERT INTO datatype VALUES(%u, '%s', %zu)", type,
                 datatype_name(type), datatype_bytes(type));
        if (execute(store, sql, err) < 0)
            return -1;
    }
    for (unsigned redop = 0; redop <= REDOP_UNKNOWN; redop++) {
        snprintf(sql, sizeof sql, "INSERT INTO redop VALUES(%u, '%s')", redop, redop_name(redop));
        if (execute(store, sql, err) < 0)
            return -1;
    }
    for (const struct lack_text *lack = lack_texts; lack->bit; lack++) {
        sqlite3_snprintf(sizeof sql, sql, "INSERT INTO lack VALUES(%u, %Q, %Q, %Q)", lack->bit,
                         lack->name, lack->what, lack->codes);
        if (execute(store, sql, err) < 0)
            return -1;
    }
    return 0;
}

static int create_schema(struct store *store, struct error *err)
{
    static const char *const parts[] = {schema_sql,        schema_state_sql,   schema_python_sql,
                                        schema_import_sql, schema_finding_sql, schema_keep_sql};
    char version[96];
    int result = 0;
    snprintf(version, sizeof version, "PRAGMA application_id = %d; PRAGMA user_version = %d;",
             STORE_APPLICATION_ID, STORE_SCHEMA_MAJOR * 1000 + STORE_SCHEMA_MINOR);
    if (execute(store, "BEGIN IMMEDIATE", err) < 0)
        return -1;
    for (size_t i = 0; !result && i < sizeof parts / sizeof *parts; i++)
        result = execute(store, parts[i], err);
    if (result == 0 && fill_names(store, err) == 0 && execute(store, version, err) == 0 &&
        store_meta(store, "tool", "ddpcheck " DDPCHECK_VERSION, err) == 0)
        return execute(store, "COMMIT", err);
    store_rollback(store);
    return -1;
}

int store_check_version(const char *path, int64_t version, struct error *err)
{
    int major = (int)(version / 1000), minor = (int)(version % 1000);
    if (major == STORE_SCHEMA_MAJOR && minor >= STORE_SCHEMA_MINOR)
        return 0;
    return error_set(
        err, "%s has trace schema %d.%d, this ddpcheck has %d.%d: %s", path, major, minor,
        STORE_SCHEMA_MAJOR, STORE_SCHEMA_MINOR,
        major > STORE_SCHEMA_MAJOR
            ? "use the ddpcheck that wrote it, or a newer one"
            : "it was recorded by a pre-release; record again, into another directory");
}

/* Makes the schema in an empty file; refuses a file that is not ours. */
static int check_schema(struct store *store, struct error *err)
{
    long long application, version, tables;
    if (pragma(store, "SELECT count(*) FROM sqlite_master", &tables, err) < 0) {
        if ((store->failure & 0xff) == SQLITE_NOTADB)
            error_set(err,
                      "%s is not a database; give another trace directory or move the file away",
                      store->path);
        return -1;
    }
    if (pragma(store, "PRAGMA application_id", &application, err) < 0 ||
        pragma(store, "PRAGMA user_version", &version, err) < 0)
        return -1;
    if (tables == 0 && application == 0)
        return create_schema(store, err);
    if (application != STORE_APPLICATION_ID)
        return error_set(err, "%s is a database of another program; give another trace directory",
                         store->path);
    return store_check_version(store->path, version, err);
}

int store_open(struct store **result, const char *path, struct error *err)
{
    *result = NULL;
    struct store *store = calloc(1, sizeof *store);
    if (!store || !(store->path = strdup(path))) {
        free(store);
        return error_memory(err, "can't open %s", path);
    }
    if (sqlite3_open_v2(path, &store->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        int number = store->db ? sqlite3_system_errno(store->db) : ENOMEM;
        error_set(err, "can't open %s for writing: %s", path,
                  number ? strerror(number) : sqlite3_errmsg(store->db));
        goto out;
    }
    sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
    /* The file may be somebody's who wants us to run what it holds. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    if (check_schema(store, err) < 0 || store_events_begin(store, err) < 0)
        goto out;
    /* A write-ahead log's index is memory that only processes of one host share: readers on others
     * would see a torn database. */
    const char *journal = network_file_system(path) ? "PRAGMA journal_mode = DELETE"
                                                    : "PRAGMA journal_mode = WAL";
    if (execute(store, journal, err) < 0 ||
        execute(store,
                "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 67108864; "
                "PRAGMA wal_autocheckpoint = 4096; " /* pages: 16 MB */
                "PRAGMA temp_store = MEMORY",
                err) < 0 ||
        store_findings_stay(store, err) < 0)
        goto out;
    *result = store;
    return 0;
out:;
    bool is_damaged = (store->failure & 0xff) == SQLITE_CORRUPT; /* not one of another program */
    store_close(store, NULL);
    return is_damaged ? STORE_DAMAGED : -1;
}

int store_close(struct store *store, struct error *err)
{
    if (!store)
        return 0;
    int result = 0;
    if (store->db && !sqlite3_get_autocommit(store->db))
        result = store_commit(store, err);
    for (int i = 0; i < STORE_STATEMENTS; i++)
        sqlite3_finalize(store->statement[i]);
    if (store->db && sqlite3_close(store->db) != SQLITE_OK)
        result = store_failed(store, err);
    store_block_free(store);
    free(store->path);
    free(store);
    return result;
}

int store_begin(struct store *store, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_BEGIN, err);
    return statement ? store_run(store, statement, err) : -1;
}

int store_commit(struct store *store, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_COMMIT, err);
    return statement ? store_run(store, statement, err) : -1;
}

void store_rollback(struct store *store)
{
    for (int i = 0; i < STORE_STATEMENTS; i++)
        if (store->statement[i])
            sqlite3_reset(store->statement[i]);
    if (!sqlite3_get_autocommit(store->db)) /* SQLite itself undoes a batch after some failures */
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    store_block_undone(store);
}

int store_process_find(struct store *store, const struct process_info *info, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_PROCESS_FIND, err);
    if (!statement)
        return -2;
    sqlite3_bind_text(statement, 1, info->boot_id, -1, SQLITE_STATIC);
    sqlite3_bind_int(statement, 2, info->pid);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)info->start_ticks);
    sqlite3_bind_int64(statement, 4, (sqlite3_int64)info->monotonic_ns);
    int code = sqlite3_step(statement);
    int id = code == SQLITE_ROW ? sqlite3_column_int(statement, 0) : -1;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        id = store_failed(store, err) - 1;
    sqlite3_reset(statement);
    return id;
}

int store_process(struct store *store, const struct process_info *info, struct error *err)
{
    int id = store_process_find(store, info, err);
    if (id != -1)
        return id < 0 ? -1 : id;
    sqlite3_stmt *statement = store_prepare(store, STORE_PROCESS_ADD, err);
    if (!statement)
        return -1;
    const sqlite3_int64 before[] = {info->pid, (sqlite3_int64)info->start_ticks};
    const sqlite3_int64 after[] = {(sqlite3_int64)info->realtime_ns,
                                   (sqlite3_int64)info->monotonic_ns,
                                   info->rank,
                                   info->local_rank,
                                   info->world_size,
                                   info->restart,
                                   info->uid,
                                   info->nccl_version,
                                   info->cuda_runtime_version,
                                   info->cuda_driver_version};
    const char *const texts[] = {info->host, info->launcher, info->job, info->program,
                                 info->command};
    int column = 1;
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        sqlite3_bind_int64(statement, column++, before[i]);
    sqlite3_bind_text(statement, column++, info->boot_id, -1, SQLITE_STATIC);
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        sqlite3_bind_int64(statement, column++, after[i]);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        sqlite3_bind_text(statement, column++, texts[i], -1, SQLITE_STATIC);
    if (store_run(store, statement, err) < 0)
        return -1;
    return store_process_find(store, info, err);
}

int store_shift_process(struct store *store, int process, int64_t shift_ns, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_PROCESS_SHIFT, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, shift_ns);
    sqlite3_bind_int(statement, 2, process);
    return store_run(store, statement, err);
}

int store_imported(struct store *store, int process, const struct store_import *imported,
                   struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_IMPORTED, err);
    if (!statement)
        return -1;
    sqlite3_bind_int(statement, 1, process);
    sqlite3_bind_text(statement, 2, imported->format, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 3, imported->title, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 4, imported->file, -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 5, imported->lacks);
    return store_run(store, statement, err);
}

int store_is_new(struct store *store, struct error *err)
{
    return execute(store,
                   "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = "
                   "EXCLUSIVE",
                   err) < 0
               ? -1
               : 0;
}

int store_meta(struct store *store, const char *key, const char *value, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, value ? STORE_META_SET : STORE_META_REMOVE, err);
    if (!statement)
        return -1;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    if (value)
        sqlite3_bind_text(statement, 2, value, -1, SQLITE_STATIC);
    return store_run(store, statement, err);
}

int store_meta_get(struct store *store, const char *key, char *value, size_t bytes,
                   struct error *err)
{
    value[0] = 0;
    sqlite3_stmt *statement = store_prepare(store, STORE_META_GET, err);
    if (!statement)
        return -1;
    sqlite3_bind_text(statement, 1, key, -1, SQLITE_STATIC);
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        snprintf(value, bytes, "%s", (const char *)sqlite3_column_text(statement, 0));
    int result = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_failed(store, err);
    sqlite3_reset(statement);
    return result;
}

int store_checkpoint(struct store *store, struct error *err)
{
    int code = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return code == SQLITE_OK ? 0 : store_failed(store, err);
}
