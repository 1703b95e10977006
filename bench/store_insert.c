/* store_insert.c: measures how fast the store takes events, beside a prepared INSERT into the same
 * table with nothing around it. */
#include <stdio.h>

#include "bench/bench.h"
#include "lib/trace/store.h"

enum { ROWS = 400000, BATCH = 4096, ROUNDS = 3 };

static double insert_by_store(const char *path)
{
    struct error err = {{0}};
    struct store *store = bench_store_begin(path);
    struct bench_job job = {0};
    static struct record record[BATCH];
    static int process[BATCH];
    bench_check(store_commit(store, &err), &err);
    uint64_t begin = bench_now_ns();
    for (int row = 0; row < ROWS; row += BATCH) {
        int count = ROWS - row < BATCH ? ROWS - row : BATCH;
        for (int i = 0; i < count; i++)
            process[i] = bench_job_next(&job, &record[i]);
        bench_check(store_begin(store, &err), &err);
        bench_check(store_events(store, process, record, count, &err), &err);
        bench_check(store_commit(store, &err), &err);
    }
    double rate = ROWS / ((double)(bench_now_ns() - begin) / 1e9);
    bench_check(store_close(store, &err), &err);
    return rate;
}

int main(void)
{
    const char *directory = bench_directory();
    double ours[ROUNDS], raw[ROUNDS];
    char path[600];
    for (int round = 0; round < ROUNDS; round++) {
        snprintf(path, sizeof path, "%s/raw%d.db", directory, round);
        uint64_t begin = bench_now_ns();
        bench_insert_raw(path, ROWS, BATCH);
        raw[round] = ROWS / ((double)(bench_now_ns() - begin) / 1e9);
        snprintf(path, sizeof path, "%s/store%d.db", directory, round);
        ours[round] = insert_by_store(path);
    }
    double raw_rate = bench_median(raw, ROUNDS), rate = bench_median(ours, ROUNDS);
    printf("raw prepared insert      %12.0f rows/s\n", raw_rate);
    printf("store_events             %12.0f rows/s   %5.2f of raw (aim: at least 0.70)\n", rate,
           rate / raw_rate);
    return 0;
}
