/* analyze.c: measures how fast a trace is read and analysed, beside a plain scan of the same rows.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <sys/resource.h>

#include "analyzer/analyzer.h"
#include "bench/bench.h"
#include "lib/trace/store.h"
#include "lib/trace/trace.h"

enum { ROWS = 400000, ROUNDS = 3, EVENT_COLUMNS = 22 };

static void make_trace(const char *path)
{
    struct error err = {{0}};
    struct store *store = bench_store_begin(path);
    struct bench_job job = {0};
    struct record record;
    for (int row = 0; row < ROWS; row++) {
        int rank = bench_job_next(&job, &record);
        bench_check(store_event(store, rank, &record, &err), &err);
    }
    bench_check(store_commit(store, &err), &err);
    bench_check(store_close(store, &err), &err);
}

static double scan_raw(const char *path)
{
    sqlite3 *db;
    sqlite3_stmt *select;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) ||
        sqlite3_prepare_v2(db, "SELECT * FROM event ORDER BY seq", -1, &select, NULL))
        bench_die("can't read %s: %s", path, sqlite3_errmsg(db));
    uint64_t begin = bench_now_ns(), rows = 0;
    volatile sqlite3_int64 sum = 0;
    while (sqlite3_step(select) == SQLITE_ROW) {
        for (int i = 0; i < EVENT_COLUMNS; i++)
            sum += sqlite3_column_int64(select, i);
        rows++;
    }
    double rate = (double)rows / ((double)(bench_now_ns() - begin) / 1e9);
    (void)sum;
    sqlite3_finalize(select);
    sqlite3_close(db);
    return rate;
}

/* Rows a second of trace_next alone, or with the analyzer behind it. */
static double read_trace(const char *path, bool analyze)
{
    struct error err = {{0}};
    struct trace *trace;
    struct record record;
    int process, more;
    bench_check(trace_open(&trace, &path, 1, &err), &err);
    struct analyzer *analyzer = analyzer_new(&(struct analyzer_options){0});
    for (int i = 0; analyzer && i < trace_process_count(trace); i++)
        bench_check(analyzer_add_process(analyzer, i, trace_process(trace, i)), &err);
    if (!analyzer)
        bench_die("memory is short");
    uint64_t begin = bench_now_ns(), rows = 0;
    while ((more = trace_next(trace, &process, &record, &err)) > 0) {
        if (analyze)
            bench_check(analyzer_feed(analyzer, process, &record), &err);
        rows++;
    }
    bench_check(more, &err);
    double rate = (double)rows / ((double)(bench_now_ns() - begin) / 1e9);
    if (analyzer_skipped(analyzer))
        bench_die("the analyzer skipped %ju records of the made-up job",
                  (uintmax_t)analyzer_skipped(analyzer));
    analyzer_free(analyzer);
    trace_close(trace);
    return rate;
}

int main(void)
{
    char path[600];
    double raw[ROUNDS], read[ROUNDS], analyzed[ROUNDS];
    struct rusage usage;
    snprintf(path, sizeof path, "%s/trace.db", bench_directory());
    make_trace(path);
    for (int round = 0; round < ROUNDS; round++) {
        raw[round] = scan_raw(path);
        read[round] = read_trace(path, false);
        analyzed[round] = read_trace(path, true);
    }
    double raw_rate = bench_median(raw, ROUNDS), read_rate = bench_median(read, ROUNDS);
    double rate = bench_median(analyzed, ROUNDS);
    getrusage(RUSAGE_SELF, &usage);
    printf("raw scan                 %12.0f rows/s\n", raw_rate);
    printf("trace_next               %12.0f rows/s   %5.2f of raw\n", read_rate,
           read_rate / raw_rate);
    printf("trace_next + analyzer    %12.0f rows/s   %5.2f of raw (aim: at least 0.70)\n", rate,
           rate / raw_rate);
    printf("peak memory              %12.1f MB\n", (double)usage.ru_maxrss / 1024);
    return 0;
}
