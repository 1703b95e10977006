/* rank_traces.c: writes the trace of a made-up job of many ranks (rank_job.h).
 *
 *     bench_rank_traces DIRECTORY END RANKS [grid] [hosts]
 *
 * makes one database, or one for each host. bench/ranks.py times what reads them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/rank_job.h"
#include "cmd/import_judge.h"
#include "lib/import/import.h"

enum { HOST_RANKS = RANK_JOB_HOST_RANKS };

/* The database that is written, and the ranks in it. */
struct rank_database {
    struct rank_job job;
    struct store *store;
    const struct import_judge *judge;
    int first, count;
};

static void write_rank_record(void *context, int rank, const struct record *record)
{
    struct rank_database *database = context;
    const struct import_judge *judge = database->judge;
    struct error err = {{0}};
    int process = rank - database->first;
    bench_check(store_event(database->store, process, record, &err), &err);
    bench_check(judge->record(judge->context, process, record, &err), &err);
}

static void write_rank_process(struct rank_database *database, int rank)
{
    const struct process_info info = rank_job_process(&database->job, rank);
    const struct import_judge *judge = database->judge;
    struct error err = {{0}};
    bench_check(store_process(database->store, &info, &err), &err);
    bench_check(judge->process(judge->context, rank - database->first, &info, &err), &err);
}

/* Its ranks, in the order in which a collector would have come by their records. */
static void write_database(struct rank_database *database, const char *path)
{
    struct error err = {{0}};
    struct import_verdict verdict;
    int count = database->count, prime = 1000003;
    bench_check(store_open(&database->store, path, &err), &err);
    bench_check(store_is_new(database->store, &err), &err);
    bench_check(store_begin(database->store, &err), &err);
    database->judge = import_judge_new(&verdict, &err);
    if (!database->judge)
        bench_die("%s", err.text);
    for (int i = 0; i < count; i++)
        write_rank_process(database, database->first + i);
    bool more = true;
    for (int moment = 0; more; moment++)
        for (int i = 0; i < count; i++)
            more = rank_job_moment(&database->job,
                                   database->first + (int)((int64_t)i * prime % count), moment);
    bench_check(database->judge->end(database->judge->context, database->store, &err), &err);
    bench_check(store_meta(database->store, "ended", "1", &err), &err);
    bench_check(store_commit(database->store, &err), &err);
    bench_check(store_close(database->store, &err), &err);
    import_judge_free(database->judge);
}

int main(int argc, char **argv)
{
    struct rank_database database = {0};
    bool grid = argc > 4 && !strcmp(argv[4], "grid");
    bool by_host = argc > 4 + grid && !strcmp(argv[4 + grid], "hosts");
    if (argc < 4 || argc > 4 + grid + by_host ||
        rank_job_begin(&database.job, argv[2], atoi(argv[3]), grid))
        bench_die("rank_traces DIRECTORY " RANK_JOB_ENDS " RANKS [grid] [hosts]; ranks: a multiple "
                  "of %d, and memory for them",
                  HOST_RANKS);
    database.job.record = write_rank_record;
    database.job.context = &database;
    database.count = by_host ? HOST_RANKS : database.job.ranks;
    for (; database.first < database.job.ranks; database.first += database.count) {
        char path[600];
        snprintf(path, sizeof path, "%s/n%05d.db", argv[1], database.first / HOST_RANKS);
        write_database(&database, path);
    }
    free(database.job.rank);
    return 0;
}
