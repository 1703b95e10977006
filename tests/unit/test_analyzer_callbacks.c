/* DC208: host functions that never return, and the hangs that only seem to be of that kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 3, STREAM = 0x10, OTHER = 0x20, MAIN = 100, RUNNER = 700, EVENT = 0xe0 };

static struct job *new_job(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        stream_create(job, rank, STREAM, true);
        stream_create(job, rank, OTHER, true);
        ALL_REDUCE(job, rank, WORLD, 1, .stream = STREAM);
        wait_done(job, rank, API_cudaStreamSynchronize, STREAM);
    }
    return job;
}

static uint64_t launch_function(struct job *job, int rank)
{
    struct record record = {.api = API_cudaLaunchHostFunc, .stream = STREAM};
    record.launch.known = LAUNCH_REPORTS_RUN;
    return job_record(job, rank, record);
}

static void notice(struct job *job, int rank, uint16_t api, uint64_t launch)
{
    struct record record = {.api = api, .stream = STREAM};
    record.leave.enter = launch;
    job_thread(job, rank, RUNNER + (uint32_t)rank);
    job_record(job, rank, record);
}

static void begins(struct job *job, int rank, uint64_t launch)
{
    notice(job, rank, API_notice_host_function, launch);
}

static void ends(struct job *job, int rank, uint64_t launch)
{
    notice(job, rank, API_notice_host_function_end, launch);
    job_thread(job, rank, MAIN + (uint32_t)rank);
}

/* The function destroys the communicator whose AllReduce stands behind it. */
static void function_waits_for_what_is_behind_it(void **state)
{
    (void)state;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job *job = new_job();
        for (int rank = 0; rank < RANKS; rank++) {
            uint64_t launch = 0;
            if (rank == 1 && faulty)
                launch = launch_function(job, rank);
            ALL_REDUCE(job, rank, WORLD, 100, .stream = STREAM);
            if (rank == 1 && !faulty)
                launch = launch_function(job, rank);
            if (rank == 1) {
                begins(job, rank, launch);
                comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
                job_thread(job, rank, MAIN + (uint32_t)rank);
            } else {
                wait_enter(job, rank, API_cudaStreamSynchronize, STREAM);
            }
        }
        if (!faulty) {
            job_thread(job, 1, RUNNER + 1);
            call_leave(job, 1);
            for (int rank = 0; rank < RANKS; rank += 2) {
                call_leave(job, rank);
                comm_call_enter(job, rank, API_ncclCommDestroy, WORLD);
                call_leave(job, rank);
            }
        }
        ticks(job, 1000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, faulty ? "DC208" : NULL);
        if (faulty) {
            assert_int_equal(found->certainty, CERTAIN);
            assert_string_equal(found->ranks[0], "1");
            assert_string_equal(found->call[0], "cudaLaunchHostFunc");
            assert_non_null(strstr(found->where[0], "in ncclCommDestroy"));
        }
        job_free(job);
    }
}

/* It waits for a lock that the waiting thread holds: nobody sees that, only that it does not
 * return. */
static void function_waits_for_a_lock(void **state)
{
    (void)state;
    for (int how = 0; how < 3;
         how++) { /* directly; through an event; through an operation behind it */
        struct job *job = new_job();
        uint64_t launch[RANKS];
        for (int rank = 0; rank < RANKS; rank++) {
            launch[rank] = launch_function(job, rank);
            if (how == 2)
                ALL_REDUCE(job, rank, WORLD, 100, .stream = STREAM);
            event_record(job, rank, EVENT, STREAM);
            event_wait(job, rank, EVENT, OTHER);
            wait_enter(job, rank, API_cudaStreamSynchronize, how == 1 ? OTHER : STREAM);
            begins(job, rank, launch[rank]);
        }
        ticks(job, 9000);
        expect(job, NULL);
        ticks(job, 2000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, "DC208");
        assert_int_equal(found->certainty, POSSIBLE);
        assert_string_equal(found->ranks[0], "0-2");
        assert_int_equal(found->sides, 2);
        for (int rank = 0; rank < RANKS; rank++) { /* it was only slow */
            ends(job, rank, launch[rank]);
            job_record(job, rank,
                       (struct record){.api = API_cudaStreamSynchronize, .phase = RECORD_LEAVE});
        }
        ticks(job, 500);
        expect(job, NULL);
        job_free(job);
    }
}

/* The function returned, or it stands behind an operation that waits for another rank: that is the
 * fault then. */
static void other_faults_stay_what_they_are(void **state)
{
    (void)state;
    struct job *job = new_job();
    for (int rank = 0; rank < 2; rank++) {
        ALL_REDUCE(job, rank, WORLD, 100, .stream = STREAM);
        launch_function(job, rank);
        wait_enter(job, rank, API_cudaStreamSynchronize, STREAM);
    }
    ticks(job, 11000);
    struct verdict verdict;
    assert_string_equal(expect_in(job, &verdict, "DC201")->ranks[1], "2");
    job_free(job);
}

/* An event that was never recorded holds nothing up. */
static void event_that_was_never_recorded(void **state)
{
    (void)state;
    struct job *job = new_job();
    for (int rank = 0; rank < RANKS; rank++) {
        event_wait(job, rank, 0xe9, STREAM);
        ALL_REDUCE(job, rank, WORLD, 100, .stream = STREAM);
        wait_enter(job, rank, API_cudaEventSynchronize, 0xe9);
    }
    ticks(job, 12000);
    expect(job, NULL);
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(function_waits_for_what_is_behind_it),
        cmocka_unit_test(function_waits_for_a_lock),
        cmocka_unit_test(other_faults_stay_what_they_are),
        cmocka_unit_test(event_that_was_never_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
