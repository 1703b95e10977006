/* hazard_stream.h: a job of two ranks whose reductions and writes may overlap, for the tests of
 * DC301 to DC306. */
#ifndef DDPCHECK_TEST_HAZARD_STREAM_H
#define DDPCHECK_TEST_HAZARD_STREAM_H

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum {
    COMPUTE = 0x70,
    OTHER = 0x71,
    COMMUNICATION = 0x80,
    DEFAULT = 0,
    FILLED = 0xe1,
    REDUCED = 0xe2,
    NEVER_MADE = 0xe3
};
enum { BASE = 0x100000, COUNT = 1024, BYTES = 4 * COUNT };
extern const char clip[]; /* a kernel, mangled */

/* Two ranks with a communicator, WORLD, and the streams COMPUTE, OTHER and COMMUNICATION. */
struct job *hazard_job_new(bool non_blocking);
/* An AllReduce of COUNT floats on both ranks. */
void reduce(struct job *job, uint64_t stream, uint64_t sendbuff, uint64_t recvbuff);
/* Ends the job as a correct one, so that nothing but the hazard can be found; fails the test unless
 * it is found on rank 1, `times` times, or nothing if code is NULL. Frees the job. */
void expect_code(struct job *job, const char *code, enum certainty certainty, uint64_t times);
/* expect_code for DC301, or nothing. */
void expect_hazard(struct job *job, bool is_hazard, enum certainty certainty, uint64_t times);

#endif
