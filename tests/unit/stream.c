#include "stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define START_NS UINT64_C(1000000000)

enum { SLOTS = 64, COUNTERS = 256 };

struct event {
    int rank; /* -1: a tick */
    struct record record;
};

struct counter {
    uint64_t key[3];
    uint64_t value;
    bool used;
};

struct rank_state {
    uint32_t thread;
    uint64_t serial, lost, group, last_enter;
    uint16_t last_api;
    uint32_t slots;
    struct counter counter[COUNTERS];
};

struct job {
    int ranks;
    uint64_t now_ns;
    struct event *event;
    size_t events, capacity;
    struct rank_state rank[JOB_RANKS_MAX];
    struct {
        uint64_t id;
        int first;
    } comm[64];
    int comms;
    struct {
        int first;
        uint64_t started_ns;
    } start[4]; /* the first one of the job is not in it */
    int restarts;
    uint32_t lacks;
    bool is_import;
};

uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

struct job *job_new(int ranks)
{
    struct job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    job->ranks = ranks;
    job->now_ns = START_NS;
    for (int rank = 0; rank < ranks; rank++)
        job->rank[rank].thread = 100 + (uint32_t)rank;
    return job;
}

void job_restart(struct job *job, int rank)
{
    assert_in_range(job->restarts, 0, 3);
    job->start[job->restarts].first = rank;
    job->start[job->restarts++].started_ns = job->now_ns;
}

int job_incarnation(const struct job *job, int process, int *rank, int *ranks, uint64_t *started_ns)
{
    int restart = 0, first = 0;
    *started_ns = 0;
    while (restart < job->restarts && process >= job->start[restart].first) {
        first = job->start[restart].first;
        *started_ns = job->start[restart++].started_ns;
    }
    *rank = process - first;
    *ranks = (restart < job->restarts ? job->start[restart].first : job->ranks) - first;
    return job->restarts ? restart : -1;
}

void job_free(struct job *job)
{
    free(job->event);
    free(job);
}

void job_sleep_ms(struct job *job, uint64_t ms)
{
    job->now_ns += ms * 1000000;
}

void job_sleep_us(struct job *job, uint64_t us)
{
    job->now_ns += us * 1000;
}

void job_set_lacks(struct job *job, uint32_t lacks, bool is_import)
{
    job->lacks = lacks;
    job->is_import = is_import;
}

uint32_t job_lacks(const struct job *job, bool *is_import)
{
    *is_import = job->is_import;
    return job->lacks;
}

int job_ranks(const struct job *job)
{
    return job->ranks;
}

uint64_t job_now(const struct job *job)
{
    return job->now_ns;
}

static void append(struct job *job, int rank, const struct record *record)
{
    if (job->events == job->capacity) {
        job->capacity = job->capacity ? 2 * job->capacity : 256;
        job->event = realloc(job->event, job->capacity * sizeof *job->event);
        assert_non_null(job->event);
    }
    job->event[job->events++] = (struct event){rank, *record};
    job->now_ns += 1000;
}

uint64_t job_record(struct job *job, int rank, struct record record)
{
    struct rank_state *state = &job->rank[rank];
    record.time_ns = job->now_ns;
    record.serial = ++state->serial;
    record.thread = state->thread;
    record.device = record.device ? record.device : rank;
    append(job, rank, &record);
    if (record.phase == RECORD_ENTER) {
        state->last_enter = record.serial;
        state->last_api = record.api;
    }
    return record.serial;
}

void job_lose(struct job *job, int rank, uint64_t records)
{
    struct rank_state *state = &job->rank[rank];
    state->serial += records;
    state->lost += records;
    job_record(job, rank,
               (struct record){.api = API_notice_lost, .lost = {.control = state->lost}});
}

void job_thread(struct job *job, int rank, uint32_t thread)
{
    job->rank[rank].thread = thread;
}

/* A count per rank and three keys; made at 0. */
static uint64_t *counter(struct job *job, int rank, uint64_t a, uint64_t b, uint64_t c)
{
    struct counter *counters = job->rank[rank].counter;
    for (int i = 0; i < COUNTERS; i++) {
        if (!counters[i].used)
            counters[i] = (struct counter){{a, b, c}, 0, true};
        if (counters[i].key[0] == a && counters[i].key[1] == b && counters[i].key[2] == c)
            return &counters[i].value;
    }
    fail_msg("too many counters in one rank of the test");
    return NULL;
}

static int first_of(const struct job *job, uint64_t comm)
{
    for (int i = 0; i < job->comms; i++)
        if (job->comm[i].id == comm)
            return job->comm[i].first;
    return 0;
}

void init_enter(struct job *job, int rank, uint64_t comm, int nranks, int comm_rank, uint64_t gpu)
{
    struct record record = {.api = API_ncclCommInitRank, .phase = RECORD_ENTER};
    record.comm.comm = comm;
    record.comm.nranks = nranks;
    record.comm.rank = comm_rank;
    record.comm.device = rank;
    record.comm.gpu = gpu;
    job_record(job, rank, record);
}

void init_leave(struct job *job, int rank, uint64_t comm, int nranks, int comm_rank, int result)
{
    uint64_t enter = job->rank[rank].last_enter;
    if (!result) {
        struct record notice = {.api = API_notice_member};
        notice.comm.comm = comm;
        notice.comm.nranks = nranks;
        notice.comm.rank = comm_rank;
        notice.comm.device = rank;
        job_record(job, rank, notice);
    }
    struct record record = {.api = API_ncclCommInitRank, .phase = RECORD_LEAVE, .result = result};
    record.leave.enter = enter;
    record.leave.comm = comm;
    job_record(job, rank, record);
}

void job_init(struct job *job, uint64_t comm, int first, int last)
{
    job->comm[job->comms].id = comm;
    job->comm[job->comms++].first = first;
    for (int rank = first; rank <= last; rank++)
        init_enter(job, rank, comm, last - first + 1, rank - first, 1000 + (uint64_t)rank);
    for (int rank = first; rank <= last; rank++)
        init_leave(job, rank, comm, last - first + 1, rank - first, 0);
}

void comm_call_enter(struct job *job, int rank, uint16_t api, uint64_t comm)
{
    struct record record = {.api = api, .phase = RECORD_ENTER};
    record.comm.comm = comm;
    record.comm.rank = rank - first_of(job, comm);
    record.comm.nranks = -1;
    if (api == API_ncclCommSplit) {
        record.comm.parent = comm;
        record.comm.comm = 0;
        record.comm.ordinal = (uint32_t)(*counter(job, rank, comm, 0, 3))++;
    }
    job_record(job, rank, record);
}

static void call_leave_launched(struct job *job, int rank, uint64_t kernels, uint64_t threads)
{
    struct record record = {.api = job->rank[rank].last_api, .phase = RECORD_LEAVE};
    record.leave.enter = job->rank[rank].last_enter;
    record.leave.kernels = kernels;
    record.leave.threads = threads;
    job_record(job, rank, record);
}

void call_leave(struct job *job, int rank)
{
    call_leave_launched(job, rank, 0, 0);
}

void issue(struct job *job, int rank, struct call call)
{
    bool p2p = call.api == API_ncclSend || call.api == API_ncclRecv;
    struct record record = {
        .api = call.api, .phase = RECORD_ENTER, .stream = call.stream, .flags = call.flags};
    record.op.comm = call.comm;
    uint64_t *number =
        counter(job, rank, call.comm, p2p ? 16 + (uint64_t)call.root : 0, p2p ? call.api : 0);
    record.op.number = p2p || call.count ? (*number)++
                                         : *number; /* NCCL drops a collective of no elements */
    record.op.count = call.count;
    record.op.datatype = (uint8_t)(call.type ? call.type : TYPE_FLOAT32);
    record.op.redop = (uint8_t)call.redop;
    record.op.root = call.root;
    record.op.scalar = call.scalar;
    record.op.sendbuff = call.sendbuff;
    record.op.recvbuff = call.recvbuff;
    record.op.rank = rank - first_of(job, call.comm);
    record.op.group = job->rank[rank].group;
    record.op.slot = RECORD_NO_SLOT;
    if (!call.no_progress) {
        uint64_t *slot = counter(job, rank, call.comm, call.stream, 1);
        if (!*slot)
            *slot = ++job->rank[rank].slots;
        record.op.slot = (uint32_t)*slot;
        uint64_t *launches = counter(job, rank, call.comm, call.stream, 2);
        uint64_t *group = counter(job, rank, call.comm, call.stream, 4);
        if (!record.op.group || *group != record.op.group) /* calls of one group are one launch */
            ++*launches;
        *group = record.op.group;
        record.op.launch = *launches;
    }
    record.stack = 0x1000 + call.api;
    job_record(job, rank, record);
    call_leave_launched(job, rank, call.kernels, call.threads);
}

void group_start(struct job *job, int rank)
{
    struct record record = {.api = API_ncclGroupStart};
    record.group.depth = 1;
    record.group.group = job->rank[rank].serial + 1;
    job->rank[rank].group = job_record(job, rank, record);
}

void group_end(struct job *job, int rank)
{
    struct record record = {.api = API_ncclGroupEnd, .phase = RECORD_ENTER};
    record.group.depth = 1;
    record.group.group = job->rank[rank].group;
    job_record(job, rank, record);
    call_leave(job, rank);
    job->rank[rank].group = 0;
}

void wait_enter(struct job *job, int rank, uint16_t api, uint64_t stream)
{
    struct record record = {.api = api, .phase = RECORD_ENTER, .stream = stream};
    if (api == API_cudaEventSynchronize)
        record.wait.event = stream;
    job_record(job, rank, record);
}

void wait_done(struct job *job, int rank, uint16_t api, uint64_t stream)
{
    wait_enter(job, rank, api, stream);
    call_leave(job, rank);
}

static void event_call(struct job *job, int rank, uint16_t api, uint64_t event, uint64_t stream,
                       uint64_t flags)
{
    struct record record = {.api = api, .stream = stream};
    record.event.event = event;
    record.event.flags = flags;
    job_record(job, rank, record);
}

void event_record(struct job *job, int rank, uint64_t event, uint64_t stream)
{
    event_call(job, rank, API_cudaEventRecord, event, stream, 0);
}

void event_wait(struct job *job, int rank, uint64_t event, uint64_t stream)
{
    event_call(job, rank, API_cudaStreamWaitEvent, event, stream, 0);
}

void stream_create(struct job *job, int rank, uint64_t stream, bool non_blocking)
{
    event_call(job, rank, API_cudaStreamCreateWithFlags, 0, stream, non_blocking);
}

static void gpu_says(struct job *job, int rank, uint64_t comm, uint64_t stream, bool is_done,
                     uint32_t idle_us)
{
    struct record record = {.api = API_notice_progress, .time_ns = job->now_ns};
    record.progress.slot = (uint32_t)*counter(job, rank, comm, stream, 1);
    record.progress.started = *counter(job, rank, comm, stream, 2);
    record.progress.done = record.progress.started - !is_done;
    record.progress.idle_us = idle_us;
    append(job, rank, &record);
}

void gpu_done(struct job *job, int rank, uint64_t comm, uint64_t stream)
{
    gpu_says(job, rank, comm, stream, true, 0);
}

void gpu_started(struct job *job, int rank, uint64_t comm, uint64_t stream)
{
    gpu_says(job, rank, comm, stream, false, 0);
}

void gpu_done_since(struct job *job, int rank, uint64_t comm, uint64_t stream, uint32_t idle_us)
{
    gpu_says(job, rank, comm, stream, true, idle_us);
}

void gpu_timed(struct job *job, int rank, uint64_t comm, uint64_t stream, uint64_t begin_ns,
               uint64_t end_ns)
{
    struct record record = {.api = API_notice_timed,
                            .timed = {.launch = *counter(job, rank, comm, stream, 2),
                                      .begin_ns = begin_ns,
                                      .end_ns = end_ns,
                                      .slot = (uint32_t)*counter(job, rank, comm, stream, 1)}};
    job_record(job, rank, record);
}

struct record kernel_record(uint64_t stream, const char *mangled, uint64_t pointer)
{
    struct record record = {.api = API_cudaLaunchKernel, .stream = stream, .stack = 0x4711};
    record.launch.function = string_id(mangled, strlen(mangled));
    record.launch.count = 1;
    record.launch.written = 1;
    record.launch.pointer[0] = pointer;
    return record;
}

void kernel(struct job *job, int rank, uint64_t stream, const char *mangled, uint64_t pointer)
{
    intern(job, rank, mangled);
    job_record(job, rank, kernel_record(stream, mangled, pointer));
}

void memset_async(struct job *job, int rank, uint64_t stream, uint64_t pointer, uint64_t bytes)
{
    struct record record = {.api = API_cudaMemsetAsync, .stream = stream};
    record.copy.dst = pointer;
    record.copy.bytes = bytes;
    job_record(job, rank, record);
}

void blocking_copy(struct job *job, int rank, uint16_t api, uint64_t pointer, uint64_t bytes)
{
    struct record record = {.api = api, .phase = RECORD_ENTER};
    record.wait.dst = pointer;
    record.wait.bytes = bytes;
    job_record(job, rank, record);
    call_leave(job, rank);
}

uint64_t intern(struct job *job, int rank, const char *text)
{
    size_t bytes = strlen(text);
    for (size_t offset = 0; offset < bytes || offset == 0; offset += 64) {
        struct record record = {.api = API_notice_string};
        record.string.id = string_id(text, bytes);
        record.string.bytes = (uint32_t)bytes;
        record.string.offset = (uint32_t)offset;
        memcpy(record.string.text, text + offset, bytes - offset < 64 ? bytes - offset : 64);
        job_record(job, rank, record);
    }
    return string_id(text, bytes);
}

void range_push(struct job *job, int rank, const char *text)
{
    struct record record = {.api = API_nvtxRangePush};
    record.range.text = intern(job, rank, text);
    job_record(job, rank, record);
}

void range_pop(struct job *job, int rank)
{
    job_record(job, rank, (struct record){.api = API_nvtxRangePop});
}

void buffer(struct job *job, int rank, uint64_t base, uint64_t bytes, int device,
            enum memory_type type)
{
    struct record record = {.api = API_notice_buffer};
    record.buffer.base = record.buffer.pointer = base;
    record.buffer.bytes = bytes;
    record.buffer.device = device;
    record.buffer.type = type;
    job_record(job, rank, record);
}

void end(struct job *job, int rank, enum end_how how, int value, bool oom)
{
    struct record record = {.api = API_notice_end, .time_ns = job->now_ns};
    record.end.how = how;
    record.end.value = value;
    record.end.oom = oom;
    append(job, rank, &record);
}

void ticks(struct job *job, uint64_t ms)
{
    for (uint64_t passed = 0; passed < ms; passed += 250) {
        job_sleep_ms(job, 250);
        struct record record = {.api = API_notice_tick, .time_ns = job->now_ns};
        append(job, -1, &record);
    }
}

bool job_event(const struct job *job, size_t i, int *rank, struct record *record)
{
    if (i >= job->events)
        return false;
    *rank = job->event[i].rank;
    *record = job->event[i].record;
    return true;
}
