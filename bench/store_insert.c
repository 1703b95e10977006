/* store_insert.c: measures how fast the store takes events, beside a prepared INSERT into the same
 * table with nothing around it. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "lib/trace/store.h"

enum { ROWS = 400000, BATCH = 4096, ROUNDS = 3 };

static double insert_by_store(const char *path)
{
    struct error err = {{0}};
    struct store *store = bench_store_begin(path);
    struct bench_job job = {0};
    struct record record;
    bench_check(store_commit(store, &err), &err);
    uint64_t begin = bench_now_ns();
    for (int row = 0; row < ROWS; row++) {
        if (row % BATCH == 0)
            bench_check(store_begin(store, &err), &err);
        int rank = bench_job_next(&job, &record);
        bench_check(store_event(store, rank, &record, &err), &err);
        if (row % BATCH == BATCH - 1 || row == ROWS - 1)
            bench_check(store_commit(store, &err), &err);
    }
    double rate = ROWS / ((double)(bench_now_ns() - begin) / 1e9);
    bench_check(store_close(store, &err), &err);
    return rate;
}

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
static double insert_raw(const char *path)
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
    uint64_t begin = bench_now_ns();
    for (int row = 0; row < ROWS; row++) {
        if (row % BATCH == 0)
            execute_sql(db, "BEGIN IMMEDIATE");
        int rank = bench_job_next(&job, &record);
        bind_row(insert, rank, &record);
        if (sqlite3_step(insert) != SQLITE_DONE)
            bench_die("%s", sqlite3_errmsg(db));
        sqlite3_reset(insert);
        if (row % BATCH == BATCH - 1 || row == ROWS - 1)
            execute_sql(db, "COMMIT");
    }
    double rate = ROWS / ((double)(bench_now_ns() - begin) / 1e9);
    sqlite3_finalize(insert);
    sqlite3_close(db);
    return rate;
}

int main(void)
{
    const char *directory = bench_directory();
    double ours[ROUNDS], raw[ROUNDS];
    char path[600];
    for (int round = 0; round < ROUNDS; round++) {
        snprintf(path, sizeof path, "%s/raw%d.db", directory, round);
        raw[round] = insert_raw(path);
        snprintf(path, sizeof path, "%s/store%d.db", directory, round);
        ours[round] = insert_by_store(path);
    }
    double raw_rate = bench_median(raw, ROUNDS), rate = bench_median(ours, ROUNDS);
    printf("raw prepared insert      %12.0f rows/s\n", raw_rate);
    printf("store_event              %12.0f rows/s   %5.2f of raw (aim: at least 0.70)\n", rate,
           rate / raw_rate);
    return 0;
}
