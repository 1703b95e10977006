/* bench.c: helpers of the benchmarks: time, medians, a scratch directory, and a made-up training
 * job. */
#include "bench/bench.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const uint64_t comm = 0x5ae77eb5ea4ec1ee;
static const uint64_t record_ns = 1000; /* between two records of the job */

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *value, int count)
{
    qsort(value, count, sizeof *value, compare_values);
    return count % 2 ? value[count / 2] : (value[count / 2 - 1] + value[count / 2]) / 2;
}

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(2);
}

void bench_check(int result, const struct error *err)
{
    if (result < 0)
        bench_die("%s", err->text);
}

void bench_need(int result, const char *call)
{
    if (result)
        bench_die("%s failed with %d", call, result);
}

static char directory[512];

static int remove_entry(const char *path, const struct stat *file, int kind, struct FTW *where)
{
    (void)file, (void)kind, (void)where;
    return remove(path);
}

static void remove_directory(void)
{
    nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *bench_directory(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/ddpcheck-bench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(directory))
        bench_die("can't make a directory like %s", directory);
    atexit(remove_directory);
    return directory;
}

struct process_info bench_process(int rank)
{
    struct process_info info = {
        .pid = 1000 + rank,
        .rank = rank,
        .local_rank = rank,
        .world_size = JOB_RANKS,
        .start_ticks = 1,
        .realtime_ns = 1795271000000000000,
        .monotonic_ns = 1000000000000,
        .boot_id = "bench",
        .host = "bench",
    };
    return info;
}

/* One record of a step; `step` counts a rank's steps from 0. */
static void fill_step(struct record *record, int part, int rank, uint64_t step, uint64_t serial)
{
    uint64_t stream = 0x1000, bucket = step * 2 + (part >= 18), launch = bucket + 1;
    record->stream = stream;
    record->thread = 100 + (uint32_t)rank;
    record->device = rank;
    switch (part) {
    case 12:
    case 18:
        record->api = API_ncclAllReduce;
        record->phase = RECORD_ENTER;
        record->op.comm = comm;
        record->op.number = bucket;
        record->op.sendbuff = record->op.recvbuff = 0x7f0000000000 + (uint64_t)part * 0x1000000;
        record->op.count = 262144;
        record->op.datatype = TYPE_FLOAT32;
        record->op.root = -1;
        record->op.rank = rank;
        record->op.launch = launch;
        break;
    case 13:
    case 19:
    case 24:
        record->api = part == 24 ? API_cudaStreamSynchronize : API_ncclAllReduce;
        record->phase = RECORD_LEAVE;
        record->leave.enter = serial - 1;
        record->leave.comm = part == 24 ? 0 : comm;
        break;
    case 14:
    case 20:
        record->api = API_cudaEventRecord;
        record->event.event = 0x2000;
        break;
    case 15:
    case 21:
        record->api = API_cudaStreamWaitEvent;
        record->event.event = 0x2000;
        break;
    case 23:
        record->api = API_cudaStreamSynchronize;
        record->phase = RECORD_ENTER;
        break;
    case 25:
        record->api = API_notice_progress;
        record->progress.started = record->progress.done = step * 2 + 2;
        record->serial = 0;
        record->thread = 0;
        break;
    default:
        record->api = API_cudaLaunchKernel;
        record->launch.function = 0x9e3779b97f4a7c15;
        record->launch.grid = 128;
        record->launch.block = 256;
        record->launch.count = 2;
        record->launch.pointer[0] = 0x7f0000000000;
        record->launch.pointer[1] = 0x7f0001000000;
    }
}

int bench_job_next(struct bench_job *job, struct record *record)
{
    uint64_t at = job->emitted++;
    *record = (struct record){.time_ns = 1000000000000 + at * record_ns};
    if (at < JOB_RANKS) {
        record->serial = ++job->serial[at];
        record->api = API_notice_member;
        record->thread = 100 + (uint32_t)at;
        record->device = (int32_t)at;
        record->comm.comm = comm;
        record->comm.handle = 0x7000;
        record->comm.nranks = JOB_RANKS;
        record->comm.rank = record->comm.device = (int32_t)at;
        return (int)at;
    }
    at -= JOB_RANKS;
    int rank = (int)(at % JOB_RANKS);
    uint64_t nth = at / JOB_RANKS;
    int part = (int)(nth % JOB_STEP_RECORDS);
    record->serial = job->serial[rank] + 1;
    fill_step(record, part, rank, nth / JOB_STEP_RECORDS, record->serial);
    job->serial[rank] += record->serial != 0;
    return rank;
}

bool bench_job_step_ends(const struct bench_job *job)
{
    return job->emitted >= JOB_RANKS &&
           (job->emitted - JOB_RANKS) % ((uint64_t)JOB_RANKS * JOB_STEP_RECORDS) == 0;
}

struct store *bench_store_begin(const char *path)
{
    struct error err = {{0}};
    struct store *store;
    bench_check(store_open(&store, path, &err), &err);
    bench_check(store_begin(store, &err), &err);
    for (int rank = 0; rank < JOB_RANKS; rank++) {
        struct process_info info = bench_process(rank);
        bench_check(store_process(store, &info, &err), &err);
    }
    return store;
}
