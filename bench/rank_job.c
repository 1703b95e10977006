/* rank_job.c: makes the records of a job of many ranks. */
#include "bench/rank_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOST_RANKS = RANK_JOB_HOST_RANKS,
    WAIT_TICKS = 48,
    TERMINATED = 15,
    RESULT_IN_PROGRESS = 7, /* ncclInProgress */
    MIX = 1000003           /* a prime above RANK_JOB_RANKS_MAX / 2: ranks don't come in order */
};
enum { COMM_ALL, COMM_HOST, COMM_PIPELINE, COMM_DATA, COMM_MODEL, COMM_STAGE };
static const uint64_t start_ns = 1000000000000, second_ns = 1000000000, stream = 0x1000;

static bool job_ends(const struct rank_job *job, const char *how)
{
    return !strcmp(job->end, how);
}

/* Ranks are numbered as usual: first through a tensor parallel group, then through the data
 * parallel ones, then through the pipeline. */
struct rank_job_member rank_job_member(const struct rank_job *job, int rank, int comm)
{
    int stages = job->ranks % (HOST_RANKS * RANK_JOB_STAGES) ? 1 : RANK_JOB_STAGES;
    int copies = job->ranks / HOST_RANKS / stages;
    int tensor = rank % HOST_RANKS, copy = rank / HOST_RANKS % copies;
    int stage = rank / HOST_RANKS / copies, group = 0;
    struct rank_job_member member = {.nranks = job->ranks, .rank = rank};
    switch (comm) {
    case COMM_HOST:
        group = rank / HOST_RANKS;
        member = (struct rank_job_member){.nranks = HOST_RANKS, .rank = tensor};
        break;
    case COMM_PIPELINE:
        group = copy * HOST_RANKS + tensor;
        member = (struct rank_job_member){.nranks = stages, .rank = stage};
        break;
    case COMM_DATA:
        group = stage * HOST_RANKS + tensor;
        member = (struct rank_job_member){.nranks = copies, .rank = copy};
        break;
    case COMM_MODEL:
        group = copy;
        member = (struct rank_job_member){.nranks = HOST_RANKS * stages,
                                          .rank = stage * HOST_RANKS + tensor};
        break;
    case COMM_STAGE:
        group = stage;
        member = (struct rank_job_member){.nranks = HOST_RANKS * copies,
                                          .rank = copy * HOST_RANKS + tensor};
        break;
    default:
        member.comm = 0x5ae7000000000000;
        return member;
    }
    member.comm = (uint64_t)(comm * RANK_JOB_RANKS_MAX + group) * 0x9e3779b97f4a7c15;
    return member;
}

static void trace_record(struct rank_job *job, int rank, struct record record)
{
    record.time_ns = job->now_ns + (uint64_t)(rank % HOST_RANKS) * 1000;
    record.device = (int16_t)(rank % HOST_RANKS);
    job->record(job->context, rank, &record);
}

/* A record of the rank's own thread. Returns its serial. */
static uint64_t trace_call(struct rank_job *job, int rank, struct record record)
{
    record.serial = ++job->rank[rank].serial;
    record.thread = (uint32_t)(100 + rank % HOST_RANKS);
    trace_record(job, rank, record);
    return record.serial;
}

static void trace_return(struct rank_job *job, int rank, uint16_t api, uint64_t enter,
                         uint64_t comm)
{
    struct record record = {.api = api, .phase = RECORD_LEAVE};
    record.leave.enter = enter;
    record.leave.comm = comm;
    trace_call(job, rank, record);
}

/* As a collector says it in place of the calls before. */
static void trace_reached(struct rank_job *job, int rank, const struct rank_job_member *member)
{
    struct record record = {.api = API_notice_reached};
    record.reached.comm = member->comm;
    record.reached.rank = member->rank;
    record.reached.issued = job->before;
    record.reached.done = UINT64_MAX;
    if (job->before)
        trace_record(job, rank, record);
}

static void trace_members(struct rank_job *job, int rank)
{
    for (int comm = 0; comm < job->comms; comm++) {
        const struct rank_job_member member = rank_job_member(job, rank, comm);
        struct record record = {.api = API_notice_member};
        record.comm.comm = member.comm;
        record.comm.handle = 0x7000 + (uint64_t)comm;
        record.comm.nranks = member.nranks;
        record.comm.rank = member.rank;
        record.comm.device = rank % HOST_RANKS;
        record.comm.gpu = 1 + (uint64_t)rank;
        trace_call(job, rank, record);
        trace_reached(job, rank, &member);
        job->rank[rank].operations[comm] = job->before;
    }
}

static void trace_reduce(struct rank_job *job, int rank, int comm, uint64_t count)
{
    const struct rank_job_member member = rank_job_member(job, rank, comm);
    struct record record = {.api = API_ncclAllReduce, .phase = RECORD_ENTER, .stream = stream};
    record.op.comm = member.comm;
    record.op.number = job->rank[rank].operations[comm]++;
    record.op.launch = job->rank[rank].operations[comm];
    record.op.sendbuff = record.op.recvbuff = 0x7f0000000000 + (uint64_t)comm * 0x1000000;
    record.op.count = count;
    record.op.datatype = TYPE_FLOAT32;
    record.op.root = -1;
    record.op.rank = member.rank;
    record.op.slot = (uint32_t)comm;
    trace_return(job, rank, API_ncclAllReduce, trace_call(job, rank, record), member.comm);
}

static void trace_progress(struct rank_job *job, int rank, int comm, uint64_t started,
                           uint64_t done)
{
    struct record record = {.api = API_notice_progress};
    record.progress.slot = (uint32_t)comm;
    record.progress.started = job->before + started;
    record.progress.done = job->before + done;
    trace_record(job, rank, record);
}

/* The communicator is nonblocking: the call has returned, and the split goes on. */
static void trace_split(struct rank_job *job, int rank)
{
    const struct rank_job_member member = rank_job_member(job, rank, COMM_ALL);
    struct record record = {.api = API_ncclCommSplit, .phase = RECORD_ENTER};
    record.comm.parent = member.comm;
    record.comm.rank = member.rank;
    record.comm.nranks = -1;
    record.comm.device = rank % HOST_RANKS;
    uint64_t enter = trace_call(job, rank, record);
    record = (struct record){
        .api = API_ncclCommSplit, .phase = RECORD_LEAVE, .result = RESULT_IN_PROGRESS};
    record.leave.enter = enter;
    trace_call(job, rank, record);
}

static bool is_odd_rank(const struct rank_job *job, int rank)
{
    return job_ends(job, "half") ? rank >= job->ranks / 2 : rank == job->odd;
}

static void trace_step(struct rank_job *job, int rank, int step)
{
    bool goes_wrong = is_odd_rank(job, rank) && step == job->steps - 1;
    int first = goes_wrong && job_ends(job, "cycle") ? COMM_ALL : COMM_HOST;
    for (int comm = COMM_PIPELINE; comm < job->comms; comm++)
        trace_reduce(job, rank, comm, 4096);
    trace_reduce(job, rank, first, 4096);
    if (goes_wrong && (job_ends(job, "missing") || job_ends(job, "half")))
        return;
    if (goes_wrong && job_ends(job, "skipped"))
        trace_reduce(job, rank, COMM_HOST, 4096);
    else
        trace_reduce(job, rank, !first, goes_wrong && job_ends(job, "mismatch") ? 4097 : 4096);
}

/* How far the stream came: all operations of a step are on one. */
static void trace_all_progress(struct rank_job *job, int rank)
{
    bool in_cycle = job_ends(job, "cycle") && rank / HOST_RANKS == job->odd / HOST_RANKS;
    bool queues_own = in_cycle && is_odd_rank(job, rank), queues_all = in_cycle && !queues_own;
    uint64_t all = job->rank[rank].operations[COMM_ALL] - job->before;
    uint64_t steps = (uint64_t)job->steps;
    uint64_t own = job->rank[rank].operations[COMM_HOST] - job->before;
    bool are_done = job_ends(job, "clean") || job_ends(job, "polls");
    trace_progress(job, rank, COMM_ALL, all - queues_all, steps - !are_done);
    trace_progress(job, rank, COMM_HOST, own - queues_own, steps - in_cycle);
    for (int comm = COMM_PIPELINE; comm < job->comms; comm++)
        trace_progress(job, rank, comm, steps, steps);
}

/* All that made the last call wait for their streams. */
static void trace_wait(struct rank_job *job, int rank)
{
    struct record wait = {
        .api = API_cudaStreamSynchronize, .phase = RECORD_ENTER, .stream = stream};
    const uint64_t *issued = job->rank[rank].operations;
    uint64_t all = job->before + (uint64_t)job->steps;
    if (job_ends(job, "polls")) {
        if (rank != job->odd)
            trace_split(job, rank);
        trace_all_progress(job, rank);
        return;
    }
    bool waits = issued[COMM_ALL] == all || issued[COMM_HOST] > all;
    uint64_t enter = waits ? trace_call(job, rank, wait) : 0;
    trace_all_progress(job, rank);
    if (job_ends(job, "clean"))
        trace_return(job, rank, wait.api, enter, 0);
}

static void trace_rank_end(struct rank_job *job, int rank)
{
    bool is_clean = job_ends(job, "clean");
    for (int comm = 0; is_clean && comm < job->comms; comm++) {
        const struct rank_job_member member = rank_job_member(job, rank, comm);
        struct record record = {.api = API_ncclCommDestroy, .phase = RECORD_ENTER};
        record.comm.comm = member.comm;
        record.comm.rank = member.rank;
        record.comm.nranks = member.nranks;
        trace_return(job, rank, record.api, trace_call(job, rank, record), record.comm.comm);
    }
    struct record end = {.api = API_notice_end};
    end.end.how = is_clean ? END_EXIT : END_SIGNAL;
    end.end.value = is_clean ? 0 : TERMINATED;
    trace_record(job, rank, end);
}

static void trace_tick(struct rank_job *job, int rank)
{
    if (rank % HOST_RANKS == 0)
        trace_record(job, rank, (struct record){.api = API_notice_tick});
}

bool rank_job_moment(struct rank_job *job, int rank, int moment)
{
    int ticks = job_ends(job, "clean") ? 2 : WAIT_TICKS;
    job->now_ns = start_ns + (uint64_t)moment * second_ns / 4 +
                  (uint64_t)((int64_t)rank / HOST_RANKS * MIX % job->ranks) * 1000;
    if (moment == 0)
        trace_members(job, rank);
    else if (moment <= job->steps)
        trace_step(job, rank, moment - 1);
    else if (moment == job->steps + 1)
        trace_wait(job, rank);
    else if (moment < job->steps + 2 + ticks)
        trace_tick(job, rank);
    else if (moment == job->steps + 2 + ticks)
        trace_rank_end(job, rank);
    return moment < job->steps + 2 + ticks;
}

struct process_info rank_job_process(const struct rank_job *job, int rank)
{
    struct process_info info = {.pid = 1000 + rank,
                                .rank = rank,
                                .local_rank = rank % HOST_RANKS,
                                .world_size = job->ranks,
                                .start_ticks = 1,
                                .realtime_ns = 1795271000000000000,
                                .monotonic_ns = start_ns,
                                .job = "bench"};
    snprintf(info.host, sizeof info.host, "n%05d", rank / HOST_RANKS);
    snprintf(info.boot_id, sizeof info.boot_id, "boot-%05d", rank / HOST_RANKS);
    return info;
}

int rank_job_begin(struct rank_job *job, const char *end, int ranks, bool grid)
{
    static const char *const ends[] = {"clean",    "missing", "half", "skipped",
                                       "mismatch", "cycle",   "polls"};
    size_t known = 0;
    while (known < sizeof ends / sizeof *ends && strcmp(ends[known], end))
        known++;
    *job = (struct rank_job){.end = end,
                             .ranks = ranks,
                             .comms = grid ? RANK_JOB_GRID_COMMS : RANK_JOB_COMMS,
                             .odd = ranks / 3,
                             .steps = RANK_JOB_STEPS};
    errno = EINVAL;
    if (known == sizeof ends / sizeof *ends || ranks < HOST_RANKS || ranks > RANK_JOB_RANKS_MAX ||
        ranks % HOST_RANKS)
        return -1;
    job->rank = calloc((size_t)ranks, sizeof *job->rank);
    return job->rank ? 0 : -1;
}
