/* payload_job.h: a job whose GPUs tell hashes of what its operations send and receive. */
#ifndef DDPCHECK_TEST_PAYLOAD_JOB_H
#define DDPCHECK_TEST_PAYLOAD_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum {
    RANKS = 4,
    COUNT = 1024,
    IN_PLACE = 1 << HASH_SEND_BEFORE | 1 << HASH_RECV_AFTER,
    OUT_OF_PLACE = IN_PLACE | 1 << HASH_SEND_AFTER
};

/* RANKS ranks with the communicator WORLD, which hash; job_free ends it. */
struct job *payload_job_new(void);
/* The GPU has done everything, the communicator is destroyed, all ranks exit with status 0. */
void payload_job_finish(struct job *job);

/* What one rank's GPU tells; a field of 0 is left out where it can be. */
struct reported {
    uint16_t api;
    uint64_t number, hash, serial, name;
    enum hash_what what;
    uint8_t expects;
    uint32_t nans, infs;
    bool uniform;
};
void payload_job_tell(struct job *job, int rank, struct reported reported);

/* An operation in place: its hashes before and after. */
void payload_job_reduce(struct job *job, int rank, uint64_t number, uint64_t before,
                        uint64_t after);

#endif
