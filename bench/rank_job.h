/* rank_job.h: a made-up job of many ranks, eight to a host, record by record.
 *
 * Each rank is in a communicator of all ranks and in one of its host; with `grid` in those of a job
 * with tensor, pipeline and data parallelism (TP x PP x DP) as well. How the job ends:
 *
 *     clean      every rank destroys its communicators and exits
 *
 *     missing    a rank never makes the last call; the others wait for it until they are killed
 *
 *     half       half of the ranks never make it
 *
 *     skipped    a rank leaves it out and goes on to the next, which its host's ranks do not make
 *
 *     mismatch   a rank makes the last call with another count
 *
 *     cycle      a rank makes the last two calls, one on each communicator, in the other order
 *
 *     polls      a rank never calls ncclCommSplit on the nonblocking communicator of all; the
 *                others have, and query */
#ifndef DDPCHECK_RANK_JOB_H
#define DDPCHECK_RANK_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/trace/record.h"
#include "lib/trace/ring.h"

#define RANK_JOB_ENDS "clean|missing|half|skipped|mismatch|cycle|polls"

enum {
    RANK_JOB_HOST_RANKS = 8,
    RANK_JOB_STAGES = 4, /* of the pipeline, where the ranks can be divided so */
    RANK_JOB_COMMS = 2,  /* of all ranks; of the host's, which are a tensor parallel group */
    RANK_JOB_GRID_COMMS = 6,
    RANK_JOB_STEPS = 3, /* of an operation on each communicator, at most */
    RANK_JOB_RANKS_MAX = 1 << 20
};

struct rank_state {
    uint64_t serial, operations[RANK_JOB_GRID_COMMS];
};

struct rank_job {
    const char *end;
    int ranks, comms, odd; /* odd: the rank at fault */
    int steps;             /* that are recorded: RANK_JOB_STEPS or fewer */
    uint64_t before;       /* operations of each member that are done when its records begin */
    uint64_t now_ns;
    struct rank_state *rank;
    void (*record)(void *context, int rank, const struct record *record);
    void *context;
};

/* A member of communicator `comm` (below job->comms): its identity, size and the rank in it. */
struct rank_job_member {
    uint64_t comm;
    int nranks, rank;
};
struct rank_job_member rank_job_member(const struct rank_job *job, int rank, int comm);

/* Sets the job up; its record and context are the caller's to set. 0; -1 for an end or a number of
 * ranks that it does not have, or when memory is short. free() job->rank. */
int rank_job_begin(struct rank_job *job, const char *end, int ranks, bool grid);
/* What the process of a rank says of itself. */
struct process_info rank_job_process(const struct rank_job *job, int rank);
/* Hands out what a rank records in a moment of the job, a quarter of a second each. Returns false
 * after the last. Behind moment steps + 1 it does nothing but wait, but for a clean end. */
bool rank_job_moment(struct rank_job *job, int rank, int moment);

#endif
