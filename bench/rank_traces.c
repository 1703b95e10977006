/* rank_traces.c: writes the trace of a made-up job of many ranks, eight to a host: each is in a
 * communicator of all ranks and in one of its host. `bench_rank_traces DIRECTORY END RANKS [hosts]`
 * makes one database, or one for each host; END is how the job ends:
 *
 *     clean      every rank destroys its communicators and exits
 *     missing    a rank never makes the last call; the others wait for it until they are killed
 *     half       half of the ranks never make it
 *     mismatch   a rank makes the last call with another count
 *     cycle      a rank makes the last two calls, one on each communicator, in the other order
 *
 * bench/ranks.py times what reads them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "cmd/import_judge.h"
#include "lib/import/import.h"

enum {
    HOST_RANKS = 8,
    COMMS = 2,
    STEPS = 3,
    RANKS_MAX = 1 << 20,
    WAIT_TICKS = 48,
    TERMINATED = 15,
    MIX = 1000003 /* a prime above RANKS_MAX / 2: ranks don't come in order */
};
static const uint64_t start_ns = 1000000000000, second_ns = 1000000000, stream = 0x1000;

struct rank_state {
    uint64_t serial, operations[COMMS];
};

struct ranks_job {
    const char *end;
    int ranks, odd; /* odd: the rank at fault */
    struct rank_state *rank;
    uint64_t now_ns;
    /* The database that is written, and the ranks in it. */
    struct store *store;
    const struct import_judge *judge;
    int first, count;
};

static bool job_ends(const struct ranks_job *job, const char *how)
{
    return !strcmp(job->end, how);
}

static uint64_t comm_id(int comm, int rank)
{
    return comm == 0 ? 0x5ae7000000000000 : (uint64_t)(rank / HOST_RANKS + 1) * 0x9e3779b97f4a7c15;
}

static int comm_rank(int comm, int rank)
{
    return comm == 0 ? rank : rank % HOST_RANKS;
}

static void trace_record(struct ranks_job *job, int rank, struct record record)
{
    struct error err = {{0}};
    record.time_ns = job->now_ns + (uint64_t)(rank % HOST_RANKS) * 1000;
    record.device = (int16_t)(rank % HOST_RANKS);
    bench_check(store_event(job->store, rank - job->first, &record, &err), &err);
    bench_check(job->judge->record(job->judge->context, rank - job->first, &record, &err), &err);
}

/* A record of the rank's own thread. Returns its serial. */
static uint64_t trace_call(struct ranks_job *job, int rank, struct record record)
{
    record.serial = ++job->rank[rank].serial;
    record.thread = (uint32_t)(100 + rank % HOST_RANKS);
    trace_record(job, rank, record);
    return record.serial;
}

static void trace_return(struct ranks_job *job, int rank, uint16_t api, uint64_t enter,
                         uint64_t comm)
{
    struct record record = {.api = api, .phase = RECORD_LEAVE};
    record.leave.enter = enter;
    record.leave.comm = comm;
    trace_call(job, rank, record);
}

static void trace_members(struct ranks_job *job, int rank)
{
    for (int comm = 0; comm < COMMS; comm++) {
        struct record record = {.api = API_notice_member};
        record.comm.comm = comm_id(comm, rank);
        record.comm.handle = 0x7000 + (uint64_t)comm;
        record.comm.nranks = comm == 0 ? job->ranks : HOST_RANKS;
        record.comm.rank = comm_rank(comm, rank);
        record.comm.device = rank % HOST_RANKS;
        record.comm.gpu = 1 + (uint64_t)rank;
        trace_call(job, rank, record);
    }
}

static void trace_reduce(struct ranks_job *job, int rank, int comm, uint64_t count)
{
    struct record record = {.api = API_ncclAllReduce, .phase = RECORD_ENTER, .stream = stream};
    record.op.comm = comm_id(comm, rank);
    record.op.number = job->rank[rank].operations[comm]++;
    record.op.launch = job->rank[rank].operations[comm];
    record.op.sendbuff = record.op.recvbuff = 0x7f0000000000 + (uint64_t)comm * 0x1000000;
    record.op.count = count;
    record.op.datatype = TYPE_FLOAT32;
    record.op.root = -1;
    record.op.rank = comm_rank(comm, rank);
    record.op.slot = (uint32_t)comm;
    trace_return(job, rank, API_ncclAllReduce, trace_call(job, rank, record), record.op.comm);
}

static void trace_progress(struct ranks_job *job, int rank, int comm, uint64_t started,
                           uint64_t done)
{
    struct record record = {.api = API_notice_progress};
    record.progress.slot = (uint32_t)comm;
    record.progress.started = started;
    record.progress.done = done;
    trace_record(job, rank, record);
}

static bool is_odd_rank(const struct ranks_job *job, int rank)
{
    return job_ends(job, "half") ? rank >= job->ranks / 2 : rank == job->odd;
}

static void trace_step(struct ranks_job *job, int rank, int step)
{
    bool goes_wrong = is_odd_rank(job, rank) && step == STEPS - 1;
    int first = goes_wrong && job_ends(job, "cycle") ? 0 : 1;
    trace_reduce(job, rank, first, 4096);
    if (goes_wrong && (job_ends(job, "missing") || job_ends(job, "half")))
        return;
    trace_reduce(job, rank, !first, goes_wrong && job_ends(job, "mismatch") ? 4097 : 4096);
}

/* How far the stream came: both operations of a step are on one. */
static void trace_all_progress(struct ranks_job *job, int rank)
{
    bool in_cycle = job_ends(job, "cycle") && rank / HOST_RANKS == job->odd / HOST_RANKS;
    bool queues_own = in_cycle && is_odd_rank(job, rank), queues_all = in_cycle && !queues_own;
    uint64_t issued = job->rank[rank].operations[0];
    trace_progress(job, rank, 0, issued - queues_all, job_ends(job, "clean") ? STEPS : STEPS - 1);
    trace_progress(job, rank, 1, STEPS - queues_own, STEPS - in_cycle);
}

/* All that made the last call wait for their streams. */
static void trace_wait(struct ranks_job *job, int rank)
{
    struct record wait = {
        .api = API_cudaStreamSynchronize, .phase = RECORD_ENTER, .stream = stream};
    uint64_t enter = job->rank[rank].operations[0] == STEPS ? trace_call(job, rank, wait) : 0;
    trace_all_progress(job, rank);
    if (job_ends(job, "clean"))
        trace_return(job, rank, wait.api, enter, 0);
}

static void trace_rank_end(struct ranks_job *job, int rank)
{
    bool is_clean = job_ends(job, "clean");
    for (int comm = 0; is_clean && comm < COMMS; comm++) {
        struct record record = {.api = API_ncclCommDestroy, .phase = RECORD_ENTER};
        record.comm.comm = comm_id(comm, rank);
        record.comm.rank = comm_rank(comm, rank);
        record.comm.nranks = comm == 0 ? job->ranks : HOST_RANKS;
        trace_return(job, rank, record.api, trace_call(job, rank, record), record.comm.comm);
    }
    struct record end = {.api = API_notice_end};
    end.end.how = is_clean ? END_EXIT : END_SIGNAL;
    end.end.value = is_clean ? 0 : TERMINATED;
    trace_record(job, rank, end);
}

static void trace_tick(struct ranks_job *job, int rank)
{
    if (rank % HOST_RANKS == 0)
        trace_record(job, rank, (struct record){.api = API_notice_tick});
}

/* What a rank records in a moment of the job. Returns false after the last. */
static bool trace_moment(struct ranks_job *job, int rank, int moment)
{
    int ticks = job_ends(job, "clean") ? 2 : WAIT_TICKS;
    job->now_ns = start_ns + (uint64_t)moment * second_ns / 4 +
                  (uint64_t)((int64_t)rank / HOST_RANKS * MIX % job->ranks) * 1000;
    if (moment == 0)
        trace_members(job, rank);
    else if (moment <= STEPS)
        trace_step(job, rank, moment - 1);
    else if (moment == STEPS + 1)
        trace_wait(job, rank);
    else if (moment < STEPS + 2 + ticks)
        trace_tick(job, rank);
    else if (moment == STEPS + 2 + ticks)
        trace_rank_end(job, rank);
    return moment < STEPS + 2 + ticks;
}

static void trace_rank_process(struct ranks_job *job, int rank)
{
    struct error err = {{0}};
    struct process_info info = bench_process(rank);
    info.local_rank = rank % HOST_RANKS;
    info.world_size = job->ranks;
    snprintf(info.host, sizeof info.host, "n%05d", rank / HOST_RANKS);
    snprintf(info.boot_id, sizeof info.boot_id, "boot-%05d", rank / HOST_RANKS);
    snprintf(info.job, sizeof info.job, "bench");
    bench_check(store_process(job->store, &info, &err), &err);
    bench_check(job->judge->process(job->judge->context, rank - job->first, &info, &err), &err);
}

/* Ranks first ... first + count - 1, in the order in which a collector would have come by them. */
static void write_database(struct ranks_job *job, const char *path)
{
    struct error err = {{0}};
    struct import_verdict verdict;
    bench_check(store_open(&job->store, path, &err), &err);
    bench_check(store_is_new(job->store, &err), &err);
    bench_check(store_begin(job->store, &err), &err);
    job->judge = import_judge_new(&verdict, &err);
    if (!job->judge)
        bench_die("%s", err.text);
    for (int i = 0; i < job->count; i++)
        trace_rank_process(job, job->first + i);
    bool more = true;
    for (int moment = 0; more; moment++)
        for (int i = 0; i < job->count; i++)
            more = trace_moment(job, job->first + (int)((int64_t)i * MIX % job->count), moment);
    bench_check(job->judge->end(job->judge->context, job->store, &err), &err);
    bench_check(store_meta(job->store, "ended", "1", &err), &err);
    bench_check(store_commit(job->store, &err), &err);
    bench_check(store_close(job->store, &err), &err);
    import_judge_free(job->judge);
}

int main(int argc, char **argv)
{
    struct ranks_job job = {.end = argc > 2 ? argv[2] : "", .ranks = argc > 3 ? atoi(argv[3]) : 0};
    bool by_host = argc == 5 && !strcmp(argv[4], "hosts");
    bool is_known = job_ends(&job, "clean") || job_ends(&job, "missing") ||
                    job_ends(&job, "half") || job_ends(&job, "mismatch") || job_ends(&job, "cycle");
    if (argc < 4 || argc > 4 + by_host || !is_known || job.ranks < HOST_RANKS ||
        job.ranks > RANKS_MAX || job.ranks % HOST_RANKS)
        bench_die("rank_traces DIRECTORY clean|missing|half|mismatch|cycle RANKS [hosts]; ranks: a "
                  "multiple of %d",
                  HOST_RANKS);
    job.rank = calloc((size_t)job.ranks, sizeof *job.rank);
    if (!job.rank)
        bench_die("memory is short");
    job.odd = job.ranks / 3;
    job.count = by_host ? HOST_RANKS : job.ranks;
    for (; job.first < job.ranks; job.first += job.count) {
        char path[600];
        snprintf(path, sizeof path, "%s/n%05d.db", argv[1], job.first / HOST_RANKS);
        write_database(&job, path);
    }
    free(job.rank);
    return 0;
}
