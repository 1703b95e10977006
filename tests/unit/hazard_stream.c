#include "hazard_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const char clip[] = "_Z13ddpcheck_clipmfPf";

struct job *hazard_job_new(bool non_blocking)
{
    struct job *job = job_new(2);
    job_init(job, WORLD, 0, 1);
    for (int rank = 0; rank < 2; rank++) {
        stream_create(job, rank, COMPUTE, non_blocking);
        stream_create(job, rank, OTHER, non_blocking);
        stream_create(job, rank, COMMUNICATION, non_blocking);
    }
    return job;
}

void reduce(struct job *job, uint64_t stream, uint64_t sendbuff, uint64_t recvbuff)
{
    for (int rank = 0; rank < 2; rank++)
        ALL_REDUCE(job, rank, WORLD, COUNT, .stream = stream, .sendbuff = sendbuff,
                   .recvbuff = recvbuff);
}

void expect_code(struct job *job, const char *code, enum certainty certainty, uint64_t times)
{
    for (int rank = 0; rank < 2; rank++) {
        wait_done(job, rank, API_cudaDeviceSynchronize, 0);
        end(job, rank, END_EXIT, 0, false);
    }
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, code);
    if (code) {
        assert_int_equal(found->certainty, certainty);
        assert_int_equal(found->severity, SEVERITY_ERROR);
        assert_int_equal(found->times, times);
        assert_string_equal(found->ranks[0], "1");
        if (found->sides > 1)
            assert_string_equal(found->ranks[1], "1");
        assert_int_equal(found->comm, WORLD);
    }
    job_free(job);
}

void expect_hazard(struct job *job, bool is_hazard, enum certainty certainty, uint64_t times)
{
    expect_code(job, is_hazard ? "DC301" : NULL, certainty, times);
}
