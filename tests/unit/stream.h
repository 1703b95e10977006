/* stream.h: a small language to write what the processes of a job did; verdict.h tells what the
 * analyzer says of it.
 *
 * A job is one process per rank. Its records are kept in the order in which they were written. Time
 * goes on by one microsecond per record. */
#ifndef DDPCHECK_TEST_STREAM_H
#define DDPCHECK_TEST_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/trace/record.h"

enum { JOB_RANKS_MAX = 16 };

struct job;

struct job *job_new(int ranks);
void job_free(struct job *job);
int job_ranks(const struct job *job);
/* The processes from `rank` on are ranks 0, 1, ... of the next incarnation of the job, started now
 * (restart 1, 2, ...). */
void job_restart(struct job *job, int rank);
/* Of a process: its rank in its incarnation and how many are in that; returns the restart, -1 in a
 * job without. */
int job_incarnation(const struct job *job, int process, int *rank, int *ranks,
                    uint64_t *started_ns);
void job_sleep_ms(struct job *job, uint64_t ms);
void job_sleep_us(struct job *job, uint64_t us);
/* Its processes lack this (LACKS_*): NCCL's plugin recorded them, or an import made them. */
void job_set_lacks(struct job *job, uint32_t lacks, bool is_import);
uint32_t job_lacks(const struct job *job, bool *is_import);
/* The time of the next record, ns. */
uint64_t job_now(const struct job *job);

/* Records that `records` of the rank were lost before its next one. */
void job_lose(struct job *job, int rank, uint64_t records);
/* Appends a record of `rank` as it is, with time and serial filled in; returns its serial. */
uint64_t job_record(struct job *job, int rank, struct record record);
/* Records of the thread `thread` from now on (default: 100 + rank). */
void job_thread(struct job *job, int rank, uint32_t thread);

/* One communicator of all ranks, or of ranks first .. last; its rank in it is rank - first. */
void job_init(struct job *job, uint64_t comm, int first, int last);
void init_enter(struct job *job, int rank, uint64_t comm, int nranks, int comm_rank, uint64_t gpu);
void init_leave(struct job *job, int rank, uint64_t comm, int nranks, int comm_rank, int result);
void comm_call_enter(struct job *job, int rank, uint16_t api, uint64_t comm);
void call_leave(struct job *job, int rank); /* of the last ENTER of this rank */

/* A collective, with fields by designated initialisers; type float32 and sum unless given. */
struct call {
    uint16_t api;
    uint64_t comm, count;
    int type, redop, root; /* 0: float32; 0: sum; root as it is */
    uint64_t stream, scalar;
    uint64_t sendbuff, recvbuff;
    bool no_progress;          /* no slot */
    uint16_t flags;            /* RECORD_FLAG_* */
    uint64_t kernels, threads; /* launched before it */
};
void issue(struct job *job, int rank, struct call call);
#define ALL_REDUCE(job, rank, comm_, count_, ...) \
    issue(job, rank,                              \
          (struct call){.api = API_ncclAllReduce, .comm = comm_, .count = count_, ##__VA_ARGS__})
void group_start(struct job *job, int rank);
void group_end(struct job *job, int rank);

void wait_enter(struct job *job, int rank, uint16_t api, uint64_t stream);
void wait_done(struct job *job, int rank, uint16_t api, uint64_t stream); /* ENTER, LEAVE */
void event_record(struct job *job, int rank, uint64_t event, uint64_t stream);
void event_wait(struct job *job, int rank, uint64_t event, uint64_t stream);
void stream_create(struct job *job, int rank, uint64_t stream, bool non_blocking);
/* The GPU has passed all that the rank issued on its slot of (comm, stream). */
void gpu_done(struct job *job, int rank, uint64_t comm, uint64_t stream);
/* It has begun the last of it. Or nothing of it ran so long ago, and now all is passed. */
void gpu_started(struct job *job, int rank, uint64_t comm, uint64_t stream);
void gpu_done_since(struct job *job, int rank, uint64_t comm, uint64_t stream, uint32_t idle_us);
/* CUPTI's times of the last of it, as notice_timed. */
void gpu_timed(struct job *job, int rank, uint64_t comm, uint64_t stream, uint64_t begin_ns,
               uint64_t end_ns);
/* A kernel with one pointer, that it may write through; and the record, to be changed before it is
 * appended. */
struct record kernel_record(uint64_t stream, const char *mangled, uint64_t pointer);
void kernel(struct job *job, int rank, uint64_t stream, const char *mangled, uint64_t pointer);
void memset_async(struct job *job, int rank, uint64_t stream, uint64_t pointer, uint64_t bytes);
void blocking_copy(struct job *job, int rank, uint16_t api, uint64_t pointer, uint64_t bytes);
void range_push(struct job *job, int rank, const char *text);
void range_pop(struct job *job, int rank);
uint64_t intern(struct job *job, int rank, const char *text); /* notice_string; returns the id */
void buffer(struct job *job, int rank, uint64_t base, uint64_t bytes, int device,
            enum memory_type type);
void end(struct job *job, int rank, enum end_how how, int value, bool oom);
/* The i-th record as it was written; rank -1 is a tick. False past the end. */
bool job_event(const struct job *job, size_t i, int *rank, struct record *record);
/* Time passes for all: `ms` in steps of 250 ms, a tick each. */
void ticks(struct job *job, uint64_t ms);

/* xorshift, for tests that draw by chance but can be repeated. */
uint64_t draw(uint64_t *state);

#endif
