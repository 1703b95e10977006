/* Makes small traces by hand, with fixed times, for what the report says about them:
 *
 *     make_trace DIRECTORY SITUATION      (--list names the situations)
 *
 * A situation is a job of four ranks that reduce gradients in three steps and goes wrong in one
 * way. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/trace/names.h"
#include "lib/trace/store.h"

enum { RANKS = 4, HOSTS = 2, STEPS = 3, DATABASE_BYTES = 4096 };

static const uint64_t comm = 0x5ae77eb5ea4ec1ee, stream = 0x1000, boot_ns = 1000000000000;
static const uint64_t begin_ns = 1795271000000000000; /* 2026-11-21 14:23:20 UTC */
static const uint64_t millisecond_ns = 1000000, second_ns = 1000000000;

/* Call sites: the stack of each is these functions, innermost first, below which the shim's own
 * frame lies. */
enum { SITE_NONE, SITE_REDUCE, SITE_LOSS, SITE_BARRIER, SITE_CREATE, SITES };
static const struct {
    const char *function, *file;
    int line;
} site_frame[SITES][3] = {
    [SITE_REDUCE] = {{"reducer_flush", "trainer/reducer.c", 211},
                     {"backward", "trainer/train.c", 88},
                     {"main", "trainer/main.c", 40}},
    [SITE_LOSS] = {{"loss_read", "trainer/loss.c", 35},
                   {"train_step", "trainer/train.c", 97},
                   {"main", "trainer/main.c", 40}},
    [SITE_BARRIER] = {{"barrier", "trainer/collectives.c", 61},
                      {"train_step", "trainer/train.c", 104},
                      {"main", "trainer/main.c", 40}},
    [SITE_CREATE] = {{"ranks_join", "trainer/ranks.c", 17},
                     {"main", "trainer/main.c", 22},
                     {NULL, NULL, 0}},
};

struct process {
    struct store *store;
    int index;
    uint64_t serial, operation, barriers;
};

struct job {
    struct store *store[HOSTS];
    int hosts;
    struct process rank[RANKS];
    uint64_t now_ns; /* since the job's begin */
};

static _Noreturn void die(const struct error *err)
{
    fprintf(stderr, "make_trace: %s\n", err->text);
    exit(2);
}

static void must(int result, const struct error *err)
{
    if (result < 0)
        die(err);
}

static uint64_t address_of(int site, int depth)
{
    return 0x400000 + (uint64_t)site * 0x1000 + (uint64_t)depth * 0x10;
}

/* Stores a record and returns its serial. */
static uint64_t put(struct job *job, int rank, enum api api, enum record_phase phase, int site,
                    struct record record)
{
    struct error err = {{0}};
    struct process *process = &job->rank[rank];
    record.api = (uint16_t)api;
    record.phase = (uint8_t)phase;
    record.time_ns = boot_ns + job->now_ns;
    bool is_collectors = api >= API_notice_progress;
    record.serial = is_collectors ? 0 : ++process->serial;
    record.thread = is_collectors ? 0 : 100 + (uint32_t)rank;
    record.device = rank;
    record.stack = site ? (uint64_t)site : 0;
    must(store_event(process->store, process->index, &record, &err), &err);
    job->now_ns += millisecond_ns / 10;
    return record.serial;
}

static void put_stacks(struct job *job, int rank)
{
    struct error err = {{0}};
    struct process *process = &job->rank[rank];
    for (int site = 1; site < SITES; site++) {
        struct record frames = {
            .frames = {.id = (uint64_t)site, .count = 1, .address = {address_of(site, 0)}}};
        must(store_symbol(process->store, process->index, address_of(site, 0),
                          "/opt/lib/libddpcheck.so", "wrap", NULL, 0, &err),
             &err);
        for (int i = 0; i < 3 && site_frame[site][i].function; i++) {
            uint64_t address = frames.frames.address[frames.frames.count++] =
                address_of(site, i + 1);
            must(store_symbol(process->store, process->index, address, "/home/me/ddptrain",
                              site_frame[site][i].function, site_frame[site][i].file,
                              site_frame[site][i].line, &err),
                 &err);
        }
        put(job, rank, API_notice_stack, RECORD_POINT, SITE_NONE, frames);
    }
}

static void put_range(struct job *job, int rank, const char *text)
{
    uint64_t id = string_id(text, strlen(text));
    struct record string = {.string = {.id = id, .bytes = (uint32_t)strlen(text)}};
    memcpy(string.string.text, text, strlen(text));
    put(job, rank, API_notice_string, RECORD_POINT, SITE_NONE, string);
    put(job, rank, API_nvtxRangePush, RECORD_POINT, SITE_NONE,
        (struct record){.range = {.text = id}});
}

static void put_pop(struct job *job, int rank)
{
    put(job, rank, API_nvtxRangePop, RECORD_POINT, SITE_NONE, (struct record){0});
}

static void join(struct job *job, int rank)
{
    struct record member = {.comm = {.comm = comm,
                                     .handle = 0x7000,
                                     .nranks = RANKS,
                                     .rank = rank,
                                     .device = rank,
                                     .gpu = 0xabc0 + (uint64_t)rank}};
    uint64_t enter = put(job, rank, API_ncclCommInitRank, RECORD_ENTER, SITE_CREATE, member);
    put(job, rank, API_notice_member, RECORD_POINT, SITE_NONE, member);
    put(job, rank, API_ncclCommInitRank, RECORD_LEAVE, SITE_CREATE,
        (struct record){.leave = {.enter = enter, .comm = comm, .handle = 0x7000}});
}

static void reduce(struct job *job, int rank, int site, uint64_t count)
{
    uint64_t number = job->rank[rank].operation++;
    struct record call = {.stream = stream,
                          .op = {.comm = comm,
                                 .number = number,
                                 .sendbuff = 0x10000,
                                 .recvbuff = 0x10000,
                                 .count = count,
                                 .datatype = TYPE_FLOAT32,
                                 .redop = REDOP_SUM,
                                 .root = -1,
                                 .slot = 0,
                                 .rank = rank,
                                 .launch = number + 1}};
    uint64_t enter = put(job, rank, API_ncclAllReduce, RECORD_ENTER, site, call);
    put(job, rank, API_ncclAllReduce, RECORD_LEAVE, site,
        (struct record){.stream = stream, .leave = {.enter = enter, .comm = comm}});
}

static void progress(struct job *job, int rank, uint64_t started, uint64_t done)
{
    put(job, rank, API_notice_progress, RECORD_POINT, SITE_NONE,
        (struct record){.progress = {.slot = 0, .started = started, .done = done}});
}

/* Enters a wait for the stream and stays there, or comes out. */
static void wait_stream(struct job *job, int rank, bool returns)
{
    uint64_t enter = put(job, rank, API_cudaStreamSynchronize, RECORD_ENTER, SITE_LOSS,
                         (struct record){.stream = stream});
    if (returns)
        put(job, rank, API_cudaStreamSynchronize, RECORD_LEAVE, SITE_LOSS,
            (struct record){.leave = {.enter = enter}});
}

static void destroy(struct job *job, int rank)
{
    struct record call = {
        .comm = {.comm = comm, .handle = 0x7000, .nranks = RANKS, .rank = rank, .device = rank}};
    uint64_t enter = put(job, rank, API_ncclCommDestroy, RECORD_ENTER, SITE_CREATE, call);
    put(job, rank, API_ncclCommDestroy, RECORD_LEAVE, SITE_CREATE,
        (struct record){.leave = {.enter = enter, .comm = comm}});
}

static void end_rank(struct job *job, int rank, enum end_how how, int value)
{
    struct record end = {.end = {.how = how, .value = value}};
    if (how == END_EXIT)
        put(job, rank, API_notice_exit, RECORD_POINT, SITE_NONE, end);
    put(job, rank, API_notice_end, RECORD_POINT, SITE_NONE, end);
}

/* Nothing happens, and each host's collector says so. */
static void tick(struct job *job, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        job->now_ns += second_ns;
        for (int host = 0; host < job->hosts; host++)
            put(job, host * RANKS / job->hosts, API_notice_tick, RECORD_POINT, SITE_NONE,
                (struct record){0});
    }
}

/* One step that every rank gets through. */
static void step(struct job *job)
{
    for (int rank = 0; rank < RANKS; rank++) {
        put_range(job, rank, "backward");
        reduce(job, rank, SITE_REDUCE, 4096);
        put_pop(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        progress(job, rank, job->rank[rank].operation, job->rank[rank].operation);
        wait_stream(job, rank, true);
    }
    job->now_ns += 20 * millisecond_ns;
}

static void finish(struct job *job)
{
    for (int rank = 0; rank < RANKS; rank++)
        destroy(job, rank);
    for (int rank = 0; rank < RANKS; rank++)
        end_rank(job, rank, END_EXIT, 0);
}

/* The situations, all after STEPS good steps. */

static void clean(struct job *job)
{
    finish(job);
}

static void mismatch(struct job *job)
{
    for (int rank = 0; rank < RANKS; rank++) {
        put_range(job, rank, "backward");
        reduce(job, rank, SITE_REDUCE, rank == 2 ? 1024 : 4096);
        put_pop(job, rank);
        progress(job, rank, job->rank[rank].operation, job->rank[rank].operation - 1);
        wait_stream(job, rank, false);
    }
    tick(job, 2);
    for (int rank = 0; rank < RANKS; rank++)
        end_rank(job, rank, END_SIGNAL, 15);
}

/* Rank 3 skips the barrier and reads its loss instead. */
static void missing(struct job *job)
{
    for (int rank = 0; rank < RANKS - 1; rank++) {
        put_range(job, rank, "barrier");
        reduce(job, rank, SITE_BARRIER, 1);
        put_pop(job, rank);
        progress(job, rank, job->rank[rank].operation, job->rank[rank].operation - 1);
        wait_stream(job, rank, false);
    }
    put_range(job, RANKS - 1, "checkpoint");
    tick(job, 15);
}

static void missing_ended(struct job *job)
{
    missing(job);
    for (int rank = 0; rank < RANKS; rank++)
        end_rank(job, rank, END_SIGNAL, 15);
}

/* Rank 1 is killed in the middle of a step. */
static void dead(struct job *job)
{
    end_rank(job, 1, END_SIGNAL, 9);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank == 1)
            continue;
        reduce(job, rank, SITE_REDUCE, 4096);
        progress(job, rank, job->rank[rank].operation, job->rank[rank].operation - 1);
        wait_stream(job, rank, false);
    }
    tick(job, 3);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 1)
            end_rank(job, rank, END_SIGNAL, 15);
}

static void lost(struct job *job)
{
    put(job, 0, API_notice_lost, RECORD_POINT, SITE_NONE, (struct record){.lost = {.bulk = 120}});
    put(job, 1, API_notice_lost, RECORD_POINT, SITE_NONE, (struct record){.lost = {.bulk = 7}});
    finish(job);
}

/* The trace ends in the middle of a good job. */
static void cut(struct job *job)
{
    tick(job, 1);
}

static const struct situation {
    const char *name;
    int hosts;
    bool complete;
    bool silent; /* nobody makes a call */
    void (*play)(struct job *job);
} situations[] = {
    {"clean", 1, true, false, clean},
    {"mismatch", 1, true, false, mismatch},
    {"missing", 1, true, false, missing_ended},
    {"dead", 1, true, false, dead},
    {"lost", 1, true, false, lost},
    {"cut", 1, false, false, cut},
    {"running", 1, false, false, missing},
    {"hosts", 2, true, false, missing_ended},
    {"empty", 1, true, true, NULL},
};

static void open_host(struct job *job, int host, const char *directory)
{
    struct error err = {{0}};
    char path[DATABASE_BYTES];
    snprintf(path, sizeof path, "%s/node-%02d.db", directory, host + 1);
    must(store_open(&job->store[host], path, &err), &err);
    must(store_begin(job->store[host], &err), &err);
}

static void open_rank(struct job *job, int rank)
{
    struct error err = {{0}};
    int host = rank * job->hosts / RANKS;
    struct process_info info = {
        .pid = 4000 + rank,
        .rank = rank,
        .local_rank = rank,
        .world_size = RANKS,
        .start_ticks = 100 + (uint64_t)rank,
        .realtime_ns = begin_ns,
        .monotonic_ns = boot_ns,
        .nccl_version = 22809,
        .cuda_runtime_version = 13000,
        .cuda_driver_version = 13000,
        .launcher = "torchrun",
        .program = "/home/me/ddptrain",
        .command = "ddptrain --model gan",
    };
    snprintf(info.host, sizeof info.host, "node-%02d", host + 1);
    snprintf(info.boot_id, sizeof info.boot_id, "boot-%02d", host + 1);
    struct process *process = &job->rank[rank];
    process->store = job->store[host];
    must(process->index = store_process(process->store, &info, &err), &err);
    put_stacks(job, rank);
}

static void play(const struct situation *situation, const char *directory)
{
    struct job job = {.hosts = situation->hosts};
    struct error err = {{0}};
    for (int host = 0; host < job.hosts; host++)
        open_host(&job, host, directory);
    if (!situation->silent) {
        for (int rank = 0; rank < RANKS; rank++)
            open_rank(&job, rank);
        for (int rank = 0; rank < RANKS; rank++)
            join(&job, rank);
        for (int i = 0; i < STEPS; i++)
            step(&job);
        situation->play(&job);
    }
    for (int host = 0; host < job.hosts; host++) {
        if (situation->complete)
            must(store_meta(job.store[host], "ended", "1", &err), &err);
        must(store_commit(job.store[host], &err), &err);
        must(store_close(job.store[host], &err), &err);
    }
}

int main(int argc, char **argv)
{
    int count = sizeof situations / sizeof situations[0];
    if (argc == 2 && !strcmp(argv[1], "--list")) {
        for (int i = 0; i < count; i++)
            puts(situations[i].name);
        return 0;
    }
    for (int i = 0; argc == 3 && i < count; i++) {
        if (strcmp(argv[2], situations[i].name))
            continue;
        if (mkdir(argv[1], 0777) && errno != EEXIST) {
            fprintf(stderr, "make_trace: can't make %s: %s\n", argv[1], strerror(errno));
            return 2;
        }
        play(&situations[i], argv[1]);
        return 0;
    }
    fputs("usage: make_trace DIRECTORY SITUATION | --list\n", stderr);
    return 2;
}
