/* comm_job.h: a made-up job that makes and destroys communicators, record by record.
 *
 * All ranks are in a communicator that stays. In each round they make one more of all of them by
 * ncclCommInitRank or ncclCommSplit, reduce on it, and destroy it, but for each round that `keeps`
 * divides (0: none). A quarter of a second passes in a round, and all hosts tick at its end. */
#ifndef DDPCHECK_COMM_JOB_H
#define DDPCHECK_COMM_JOB_H

#include <stdint.h>

#include "lib/trace/record.h"
#include "lib/trace/ring.h"

enum { COMM_JOB_RANKS = 2 };

struct comm_job {
    int keeps;
    uint64_t now_ns, serial[COMM_JOB_RANKS], reduced;
    void (*record)(void *context, int rank, const struct record *record);
    void *context;
};

struct process_info comm_job_process(int rank);
/* Hands out the records of the ranks' beginning: they make the communicator that stays. */
void comm_job_begin(struct comm_job *job);
/* Those of a round: 0, 1, 2, ... */
void comm_job_round(struct comm_job *job, int round);
/* The ranks exit. */
void comm_job_end(struct comm_job *job);

#endif
