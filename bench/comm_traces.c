/* comm_traces.c: writes the trace of a made-up job of many communicators (comm_job.h).
 *
 *     bench_comm_traces FILE ROUNDS [KEEPS]
 *
 * makes one database: a communicator is made and destroyed ROUNDS times, but each KEEPS-th stays.
 */
#include <stdlib.h>

#include "bench/bench.h"
#include "bench/comm_job.h"
#include "cmd/import_judge.h"
#include "lib/import/import.h"

struct comm_database {
    struct store *store;
    const struct import_judge *judge;
};

static void write_comm_record(void *context, int rank, const struct record *record)
{
    struct comm_database *database = context;
    struct error err = {{0}};
    bench_check(store_event(database->store, rank, record, &err), &err);
    bench_check(database->judge->record(database->judge->context, rank, record, &err), &err);
}

static void write_comm_process(struct comm_database *database, int rank)
{
    const struct process_info info = comm_job_process(rank);
    struct error err = {{0}};
    bench_check(store_process(database->store, &info, &err), &err);
    bench_check(database->judge->process(database->judge->context, rank, &info, &err), &err);
}

int main(int argc, char **argv)
{
    struct comm_database database = {0};
    struct comm_job job = {.record = write_comm_record, .context = &database};
    struct import_verdict verdict;
    struct error err = {{0}};
    if (argc < 3 || argc > 4)
        bench_die("comm_traces FILE ROUNDS [KEEPS]");
    job.keeps = argc > 3 ? atoi(argv[3]) : 0;
    bench_check(store_open(&database.store, argv[1], &err), &err);
    bench_check(store_is_new(database.store, &err), &err);
    bench_check(store_begin(database.store, &err), &err);
    database.judge = import_judge_new(&verdict, &err);
    if (!database.judge)
        bench_die("%s", err.text);
    for (int rank = 0; rank < COMM_JOB_RANKS; rank++)
        write_comm_process(&database, rank);
    comm_job_begin(&job);
    for (int round = 0; round < atoi(argv[2]); round++)
        comm_job_round(&job, round);
    comm_job_end(&job);
    bench_check(database.judge->end(database.judge->context, database.store, &err), &err);
    bench_check(store_meta(database.store, "ended", "1", &err), &err);
    bench_check(store_commit(database.store, &err), &err);
    bench_check(store_close(database.store, &err), &err);
    import_judge_free(database.judge);
    return 0;
}
