/* comm_job.c: makes the records of a job that makes and destroys communicators. */
#include "bench/comm_job.h"

#include <stdio.h>

enum { PLACES = 64, EVERY_SPLIT = 4 };
static const uint64_t start_ns = 1000000000000, round_ns = 250000000, stream = 0x1000;
static const uint64_t world = 0x5ae7000000000000;

/* The identity of the communicator that a round makes. */
static uint64_t comm_of(int round)
{
    return ((uint64_t)round + 1) * 0x9e3779b97f4a7c15;
}

struct process_info comm_job_process(int rank)
{
    struct process_info info = {.pid = 1000 + rank,
                                .rank = rank,
                                .local_rank = 0,
                                .world_size = COMM_JOB_RANKS,
                                .start_ticks = 1,
                                .realtime_ns = 1795271000000000000,
                                .monotonic_ns = start_ns,
                                .job = "bench"};
    snprintf(info.host, sizeof info.host, "n%05d", rank);
    snprintf(info.boot_id, sizeof info.boot_id, "boot-%05d", rank);
    return info;
}

static uint64_t add_job_record(struct comm_job *job, int rank, struct record record)
{
    record.serial = ++job->serial[rank];
    record.time_ns = job->now_ns;
    record.thread = 100;
    record.device = 0;
    job->record(job->context, rank, &record);
    return record.serial;
}

static void add_return(struct comm_job *job, int rank, uint16_t api, uint64_t enter, uint64_t comm)
{
    struct record record = {.api = api, .phase = RECORD_LEAVE};
    record.leave.enter = enter;
    record.leave.comm = comm;
    add_job_record(job, rank, record);
}

/* A record of a call that makes or ends a communicator. */
static struct record comm_record(int rank, uint16_t api, uint64_t comm, uint64_t handle)
{
    struct record record = {.api = api, .phase = RECORD_ENTER};
    record.comm.comm = comm;
    record.comm.handle = handle;
    record.comm.nranks = COMM_JOB_RANKS;
    record.comm.rank = rank;
    record.comm.gpu = 1 + (uint64_t)rank;
    return record;
}

static void make_comm(struct comm_job *job, int rank, uint64_t comm, uint64_t handle, int ordinal)
{
    uint16_t api = ordinal < 0 ? API_ncclCommInitRank : API_ncclCommSplit;
    struct record enter = comm_record(rank, api, comm, handle);
    struct record member = comm_record(rank, API_notice_member, comm, handle);
    if (ordinal >= 0) {
        enter.comm.comm = enter.comm.handle = 0;
        enter.comm.parent = member.comm.parent = world;
        enter.comm.ordinal = (uint32_t)ordinal;
    }
    member.phase = 0;
    uint64_t serial = add_job_record(job, rank, enter);
    add_job_record(job, rank, member);
    add_return(job, rank, api, serial, comm);
}

static void reduce(struct comm_job *job, int rank, uint64_t comm)
{
    struct record record = {.api = API_ncclAllReduce, .phase = RECORD_ENTER, .stream = stream};
    record.op.comm = comm;
    record.op.launch = job->reduced + 1;
    record.op.sendbuff = record.op.recvbuff = 0x7f0000000000;
    record.op.count = 4096;
    record.op.datatype = TYPE_FLOAT32;
    record.op.root = -1;
    record.op.rank = rank;
    add_return(job, rank, record.api, add_job_record(job, rank, record), comm);
}

static void add_job_notice(struct comm_job *job, int rank, struct record record)
{
    record.time_ns = job->now_ns;
    record.device = RECORD_NO_DEVICE;
    job->record(job->context, rank, &record);
}

static void add_progress(struct comm_job *job, int rank)
{
    struct record record = {.api = API_notice_progress};
    record.progress.started = record.progress.done = job->reduced;
    add_job_notice(job, rank, record);
}

static void destroy(struct comm_job *job, int rank, uint64_t comm, uint64_t handle)
{
    struct record record = comm_record(rank, API_ncclCommDestroy, comm, handle);
    add_return(job, rank, record.api, add_job_record(job, rank, record), comm);
}

void comm_job_begin(struct comm_job *job)
{
    job->now_ns = start_ns;
    for (int rank = 0; rank < COMM_JOB_RANKS; rank++)
        make_comm(job, rank, world, 0x6000, -1);
}

/* Handles are addresses: the library gives them out again. */
void comm_job_round(struct comm_job *job, int round)
{
    uint64_t comm = comm_of(round), handle = 0x7000 + (uint64_t)(round % PLACES);
    int ordinal = round % EVERY_SPLIT ? -1 : round / EVERY_SPLIT;
    job->now_ns += round_ns;
    for (int rank = 0; rank < COMM_JOB_RANKS; rank++) {
        make_comm(job, rank, comm, handle, ordinal);
        reduce(job, rank, comm);
    }
    job->reduced++;
    for (int rank = 0; rank < COMM_JOB_RANKS; rank++) {
        add_progress(job, rank);
        if (!job->keeps || round % job->keeps)
            destroy(job, rank, comm, handle);
    }
    for (int rank = 0; rank < COMM_JOB_RANKS; rank++)
        add_job_notice(job, rank, (struct record){.api = API_notice_tick});
}

void comm_job_end(struct comm_job *job)
{
    struct record end = {.api = API_notice_end};
    end.end.how = END_EXIT;
    job->now_ns += round_ns;
    for (int rank = 0; rank < COMM_JOB_RANKS; rank++)
        add_job_notice(job, rank, end);
}
