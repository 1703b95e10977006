/* collect.c: measures how fast the collector drains rings: it reads, stores and analyses what the
 * processes of a made-up job left in full rings, beside a prepared INSERT of the same records into
 * the same table with nothing around it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "bench/bench.h"
#include "collector/collector.h"
#include "collector/trace_directory.h"

enum { RECORDS = 1000000, CAPACITY = 1 << 17, ROUNDS = 3 };

struct time_spent {
    double wall_s, cpu_s;
};

static struct time_spent time_now(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct time_spent){(double)bench_now_ns() / 1e9,
                               (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                                   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6};
}

static struct time_spent time_since(struct time_spent begin)
{
    struct time_spent end = time_now();
    return (struct time_spent){end.wall_s - begin.wall_s, end.cpu_s - begin.cpu_s};
}

/* The job's processes have ended, and left their records in the rings. The collector makes its own
 * notices of progress. */
static void fill_rings(const char *rings)
{
    struct ring_file *file[JOB_RANKS];
    struct bench_job job = {0};
    struct record record;
    for (int rank = 0; rank < JOB_RANKS; rank++)
        file[rank] = bench_ring_file(rings, rank, CAPACITY, false);
    for (int written = 0; written < RECORDS;) {
        int rank = bench_job_next(&job, &record);
        if (!record.serial)
            continue;
        int kind = record.api == API_cudaLaunchKernel ? RING_BULK : RING_CONTROL;
        struct record *records;
        struct ring *ring = bench_ring(file[rank], kind, &records);
        struct ring_end end = ring_end_of(ring, records, CAPACITY);
        written += ring_append(&end, &record);
        atomic_store(&file[rank]->serial, record.serial);
    }
    for (int rank = 0; rank < JOB_RANKS; rank++)
        munmap(file[rank], sizeof *file[rank] + file[rank]->segment_bytes);
}

static bool show_all(void *context, const struct finding *finding, struct trace *trace)
{
    (void)context, (void)finding, (void)trace;
    return true;
}

static struct time_spent run_collector(const char *directory)
{
    struct error err = {{0}};
    struct collector_summary summary;
    struct directory_claim claim;
    char real[PATH_MAX], rings[PATH_MAX];
    int holder;
    bench_check(directory_make(directory, real, &err), &err);
    bench_check(directory_rings(real, rings, &err), &err);
    bench_check(directory_claim(real, &claim, &holder, &err), &err);
    fill_rings(rings);
    const struct collector_options options = {
        .directory = real, .database = claim.database, .is_shown = show_all, .notify_fd = -1};
    struct time_spent begin = time_now();
    bench_check(collector_run(&options, &summary, &err), &err);
    struct time_spent spent = time_since(begin);
    directory_release(&claim);
    if (summary.records < RECORDS)
        bench_die("%" PRIu64 " of %d records were stored", summary.records, RECORDS);
    return spent;
}

static struct time_spent run_insert(const char *path)
{
    struct time_spent begin = time_now();
    bench_insert_raw(path, RECORDS, BATCH_RECORDS);
    return time_since(begin);
}

static void print_rate(const char *name, double *wall_s, double *cpu_s)
{
    double wall = bench_median(wall_s, ROUNDS);
    printf("%-24s %12.0f records/s %6.2f s of processor per million\n", name, RECORDS / wall,
           bench_median(cpu_s, ROUNDS) * 1e6 / RECORDS);
}

int main(void)
{
    const char *directory = bench_directory();
    double wall[2][ROUNDS], cpu[2][ROUNDS];
    char path[600];
    for (int round = 0; round < ROUNDS; round++) {
        snprintf(path, sizeof path, "%s/raw%d.db", directory, round);
        struct time_spent raw = run_insert(path);
        snprintf(path, sizeof path, "%s/trace%d", directory, round);
        struct time_spent collected = run_collector(path);
        wall[0][round] = raw.wall_s, cpu[0][round] = raw.cpu_s;
        wall[1][round] = collected.wall_s, cpu[1][round] = collected.cpu_s;
    }
    print_rate("raw prepared insert", wall[0], cpu[0]);
    print_rate("the collector", wall[1], cpu[1]);
    return 0;
}
