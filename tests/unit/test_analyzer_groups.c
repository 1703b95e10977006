/* DC207: groups that are held open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 3, STREAM = 0x10, OTHER = 0x20 };

static struct job *new_job(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_create(job, rank, STREAM, true);
        stream_create(job, rank, OTHER, true);
    }
    return job;
}

static void grouped(struct job *job, int rank, bool ends)
{
    group_start(job, rank);
    ALL_REDUCE(job, rank, WORLD, 8, .stream = STREAM);
    ALL_REDUCE(job, rank, WORLD, 16, .stream = STREAM);
    if (ends)
        group_end(job, rank);
}

/* Rank 1 waits for something else that the others would only do afterwards, with the group open. */
static void others_are_stuck(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = new_job();
        for (int rank = 0; rank < RANKS; rank++)
            ALL_REDUCE(job, rank, WORLD, 4, .stream = OTHER);
        for (int rank = 0; rank < RANKS; rank++) {
            bool after = rank == 1 && !faulty;
            if (after)
                grouped(job, rank, true);
            if (rank == 1)
                issue(job, rank,
                      (struct call){.api = API_ncclRecv,
                                    .comm = WORLD,
                                    .count = 1,
                                    .root = 0,
                                    .stream = OTHER});
            if (!after)
                grouped(job, rank, rank != 1);
            wait_enter(job, rank, API_cudaStreamSynchronize, rank == 1 ? OTHER : STREAM);
        }
        if (!faulty) {
            call_leave(job, 0);
            issue(job, 0,
                  (struct call){
                      .api = API_ncclSend, .comm = WORLD, .count = 1, .root = 1, .stream = OTHER});
            wait_enter(job, 0, API_cudaStreamSynchronize, OTHER);
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, faulty ? "DC207" : NULL);
        if (faulty) {
            assert_int_equal(found->number, 1);
            assert_string_equal(found->ranks[1], "1");
            assert_string_equal(found->call[1], "called it in an ncclGroup that it has not ended");
        }
        job_free(job);
    }
}

static void ended_with_an_open_group(void **state)
{
    (void)state;
    for (int who = 0; who < 2; who++) { /* one rank; all */
        struct job *job = new_job();
        for (int rank = 0; rank < RANKS; rank++) {
            bool open = rank == 1 || who;
            grouped(job, rank, !open);
            if (!open)
                wait_enter(job, rank, API_cudaStreamSynchronize, STREAM);
        }
        for (int rank = 0; rank < RANKS; rank++)
            if (rank == 1 || who)
                end(job, rank, END_EXIT, 0, false);
        ticks(job, 3000);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, 1);
        assert_string_equal(verdict.found[0].code, "DC207");
        assert_int_equal(verdict.found[0].certainty, CERTAIN);
        assert_string_equal(verdict.found[0].ranks[who ? 0 : 1], who ? "0-2" : "1");
        job_free(job);
    }
}

/* Certain; but possible where the wait may be for other work that came after the call. */
static void wait_inside_a_group(void **state)
{
    (void)state;
    /* Its stream; the device; its stream with other work; another stream; after the end. */
    for (int how = 0; how < 5; how++) {
        struct job *job = new_job();
        for (int rank = 0; rank < RANKS; rank++) {
            grouped(job, rank, how == 4);
            if (how == 2)
                job_record(job, rank,
                           (struct record){.api = API_cudaMemsetAsync, .stream = STREAM});
            if (how == 1)
                wait_done(job, rank, API_cudaDeviceSynchronize, 0);
            else
                wait_done(job, rank, API_cudaStreamSynchronize, how == 3 ? OTHER : STREAM);
            if (how != 4)
                group_end(job, rank);
        }
        for (int rank = 0; rank < RANKS; rank++)
            wait_done(job, rank, API_cudaStreamSynchronize, STREAM);
        ticks(job, 1000);
        struct verdict verdict;
        job_analyze(job, 0, &verdict);
        assert_int_equal(verdict.count, how < 3 ? 1 : 0);
        if (how < 3) {
            assert_string_equal(verdict.found[0].code, "DC207");
            assert_int_equal(verdict.found[0].certainty, how == 2 ? POSSIBLE : CERTAIN);
        }
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_stuck),
        cmocka_unit_test(ended_with_an_open_group),
        cmocka_unit_test(wait_inside_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
