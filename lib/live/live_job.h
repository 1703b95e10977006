/* live_job.h: the ranks of a running job on this host, found in /proc, and watched for a moment.
 *
 * Nothing in the processes is changed; for native frames their threads stop as live.h says. */
#ifndef DDPCHECK_LIVE_JOB_H
#define DDPCHECK_LIVE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/live/live.h"
#include "lib/live/live_find.h"

struct live_search {
    const int *pids; /* these and what they started; none: every process that uses NCCL */
    int count;
    const char *slurm_job; /* only those of this job of Slurm's; NULL: any */
    int looks;             /* a second apart; 1: it is not known whether something moves */
    bool native;           /* native frames as well */
};

struct live_rank {
    struct live_process process;
    struct live_identity identity;
    int rank;        /* identity.rank, or its place in the order in which they were started */
    bool is_gone;    /* its launcher started it, and there is no such process: pid is 0 */
    bool is_watched; /* ddpcheck's shim is in it */
};

struct live_job {
    struct live_rank *rank;
    int ranks;
    struct live_found *found; /* all processes that were there */
    int found_count;
    bool uses_nccl;   /* one of them maps libnccl, or holds a GPU */
    bool is_numbered; /* no variable says the ranks: they are numbered by their start */
    int unreadable;   /* processes that may not be looked into */
    struct error why; /* of the first of them */
    int others;       /* ranks of other jobs, which are left out */
    int looks;
    uint64_t time_ns; /* of the last look, since 1970 */
};

/* Finds the ranks. Returns 0 (live_job_free it): there are some, or processes that may not be read;
 * or -1 with err: nothing was found. */
int live_job_find(struct live_job *job, const struct live_search *search, struct error *err);
/* Watches them, reads where they stand then, and adds those that are gone. Returns 0, or -1 with
 * err when memory is short; free it all the same. */
int live_job_watch(struct live_job *job, const struct live_search *search, struct error *err);
/* The thread of some rank that trains was elsewhere while it was watched: the job gets on. */
bool live_job_moves(const struct live_job *job);
/* When one of job->found was started, since 1970; 0: it is none of them. */
uint64_t live_start_ns(const struct live_job *job, int pid);
void live_job_free(struct live_job *job);

#endif
