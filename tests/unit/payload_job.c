/* A job whose GPUs tell hashes of what its operations send and receive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "payload_job.h"

struct job *payload_job_new(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        struct record record = {.api = API_notice_hashing};
        record.hashing.entries = RING_HASHES;
        job_record(job, rank, record);
    }
    return job;
}

void payload_job_finish(struct job *job)
{
    for (int rank = 0; rank < RANKS; rank++) {
        gpu_done(job, rank, WORLD, 0);
        comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
        call_leave(job, rank);
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
}

void payload_job_tell(struct job *job, int rank, struct reported reported)
{
    struct record record = {.api = API_notice_hash};
    record.hash.comm = WORLD;
    record.hash.number = reported.number;
    record.hash.hash = reported.hash;
    record.hash.nans = reported.nans;
    record.hash.infs = reported.infs;
    record.hash.bytes = 4 * COUNT;
    record.hash.serial = reported.serial;
    record.hash.name = reported.name;
    record.hash.rank = rank;
    record.hash.what = (uint8_t)reported.what;
    record.hash.flags =
        (uint8_t)(reported.expects << HASH_EXPECTS | (reported.uniform ? HASH_UNIFORM : 0));
    record.hash.api = reported.api ? reported.api : API_ncclAllReduce;
    job_record(job, rank, record);
}

void payload_job_reduce(struct job *job, int rank, uint64_t number, uint64_t before, uint64_t after)
{
    ALL_REDUCE(job, rank, WORLD, COUNT);
    payload_job_tell(
        job, rank,
        (struct reported){
            .number = number, .hash = before, .what = HASH_SEND_BEFORE, .expects = IN_PLACE});
    payload_job_tell(
        job, rank,
        (struct reported){
            .number = number, .hash = after, .what = HASH_RECV_AFTER, .expects = IN_PLACE});
}
