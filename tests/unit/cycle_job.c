/* A job of two communicators whose operations can wait for each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cycle_job.h"

struct job *cycle_job_new(int ranks)
{
    struct job *job = job_new(ranks);
    job_init(job, FIRST, 0, ranks - 1);
    job_init(job, SECOND, 0, ranks - 1);
    for (int rank = 0; rank < ranks; rank++) {
        stream_create(job, rank, ONE, true);
        stream_create(job, rank, TWO, true);
    }
    return job;
}

void cycle_job_issue(struct job *job, int rank, uint64_t first, uint64_t second, enum order order,
                     bool progress)
{
    uint64_t stream = order == BY_DEFAULT_STREAM ? 0x30 : ONE;
    if (order == BY_DEFAULT_STREAM)
        stream_create(job, rank, 0x30, false);
    ALL_REDUCE(job, rank, first, first == FIRST ? 100 : 200, .stream = stream,
               .no_progress = !progress);
    if (order == BY_EVENT) {
        event_record(job, rank, EVENT, ONE);
        event_wait(job, rank, EVENT, TWO);
    }
    if (order == BY_HOST)
        wait_enter(job, rank, API_cudaStreamSynchronize, ONE);
    else
        ALL_REDUCE(job, rank, second, second == FIRST ? 100 : 200, .no_progress = !progress,
                   .stream = order == ON_ONE_STREAM       ? ONE
                             : order == BY_DEFAULT_STREAM ? 0
                                                          : TWO);
}
