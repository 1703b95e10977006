/* cycle_job.h: a job of two communicators whose operations can wait for each other. */
#ifndef DDPCHECK_TEST_CYCLE_JOB_H
#define DDPCHECK_TEST_CYCLE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "verdict.h"

#define FIRST  UINT64_C(0xaaaa000000000001)
#define SECOND UINT64_C(0xbbbb000000000002)

enum { RANKS = 4, ONE = 0x10, TWO = 0x20, EVENT = 0xe0 };

/* Communicators FIRST and SECOND of all ranks, and the streams ONE and TWO on each; job_free ends
 * it. */
struct job *cycle_job_new(int ranks);

/* How the operations of the two communicators are ordered on a rank. */
enum order { ON_ONE_STREAM, BY_EVENT, BY_DEFAULT_STREAM, NOT_AT_ALL, BY_HOST };

/* One operation of each, `first` first. progress: the GPU tells how far it is. */
void cycle_job_issue(struct job *job, int rank, uint64_t first, uint64_t second, enum order order,
                     bool progress);

#endif
