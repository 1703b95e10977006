/* raw_insert.c: the reference of what stores records: a prepared INSERT of each, and no more. */
#include <sqlite3.h>

#include "bench/bench.h"

static void bind_row(sqlite3_stmt *insert, int rank, const struct record *record)
{
    const sqlite3_int64 value[] = {rank,
                                   (sqlite3_int64)record->time_ns,
                                   (sqlite3_int64)record->serial,
                                   record->api,
                                   record->phase,
                                   record->flags,
                                   record->thread,
                                   record->result,
                                   record->device,
                                   (sqlite3_int64)record->stack,
                                   (sqlite3_int64)record->stream};
    for (int i = 0; i < 11; i++)
        sqlite3_bind_int64(insert, i + 1, value[i]);
    for (int i = 0; i < 10; i++)
        sqlite3_bind_int64(insert, i + 12, (sqlite3_int64)record->word[i]);
}

static void execute_sql(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message))
        bench_die("%s: %s", sql, message);
}

/* The file is the store's, so that schema and settings are the same; only the code around the
 * INSERT is not. */
void bench_insert_raw(const char *path, int rows, int batch)
{
    struct error err = {{0}};
    struct store *store;
    bench_check(store_open(&store, path, &err), &err);
    bench_check(store_close(store, &err), &err);
    sqlite3 *db;
    sqlite3_stmt *insert;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL))
        bench_die("can't open %s", path);
    execute_sql(db, "PRAGMA journal_mode = WAL");
    execute_sql(db, "PRAGMA synchronous = NORMAL");
    if (sqlite3_prepare_v2(
            db, "INSERT INTO event VALUES(NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", -1,
            &insert, NULL))
        bench_die("%s", sqlite3_errmsg(db));
    struct bench_job job = {0};
    struct record record;
    for (int row = 0; row < rows; row++) {
        if (row % batch == 0)
            execute_sql(db, "BEGIN IMMEDIATE");
        int rank = bench_job_next(&job, &record);
        bind_row(insert, rank, &record);
        if (sqlite3_step(insert) != SQLITE_DONE)
            bench_die("%s", sqlite3_errmsg(db));
        sqlite3_reset(insert);
        if (row % batch == batch - 1 || row == rows - 1)
            execute_sql(db, "COMMIT");
    }
    sqlite3_finalize(insert);
    sqlite3_close(db);
}
