/* Ranks on their way out: exceptions, aborts, and how far those are who leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 4, OTHER_THREAD = 9, RAISED_STACK = 77 };

static struct job *job_with_a_step(void)
{
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++) {
        ALL_REDUCE(job, rank, WORLD, 16);
        wait_done(job, rank, API_cudaStreamSynchronize, 0);
    }
    return job;
}

static void others_wait(struct job *job, int from, int to)
{
    for (int rank = from; rank <= to; rank++) {
        ALL_REDUCE(job, rank, WORLD, 16);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
}

/* sys.exit() in an `except` block: the exception is recorded when the process exits. By then
 * another thread has seen that Python shuts down. */
static void an_exception_is_known_after_the_shutdown(void **state)
{
    (void)state;
    struct job *job = job_with_a_step();
    struct record record = {.api = API_notice_exception};
    record.range.id = EXCEPTION_SHUTDOWN;
    job_thread(job, 3, OTHER_THREAD);
    job_record(job, 3, record);
    job_thread(job, 3, 103);
    record.range.id = EXCEPTION_HANDLED;
    record.range.text = intern(job, 3, "ValueError: a sample is broken");
    job_record(job, 3, record);
    others_wait(job, 0, 2);
    end(job, 3, END_EXIT, 1, false);
    ticks(job, 12000);
    const struct found *found = expect(job, "DC205");
    assert_string_equal(found->ranks[1], "3");
    assert_string_equal(found->call[1],
                        "exited with status 1 after an exception (ValueError: a sample is broken)");
    job_free(job);
}

/* One has destroyed the communicator, another is about to. */
static void leavers_are_one_side(void **state)
{
    (void)state;
    struct job *job = job_with_a_step();
    comm_call_enter(job, 0, API_ncclCommDestroy, WORLD);
    call_leave(job, 0);
    comm_call_enter(job, 1, API_ncclCommDestroy, WORLD);
    others_wait(job, 2, 3);
    ticks(job, 12000);
    const struct found *found = expect(job, "DC206");
    assert_int_equal(found->sides, 2);
    assert_string_equal(found->ranks[0], "2-3");
    assert_string_equal(found->ranks[1], "0-1");
    job_free(job);
}

/* Who aborts the communicator and then exits with status 0 gave it up; Python, which shuts down,
 * aborts what is left: that rank only left early. */
static void an_abort_is_the_programs_or_pythons(void **state)
{
    (void)state;
    for (int shuts_down = 0; shuts_down < 2; shuts_down++) {
        struct job *job = job_new(RANKS);
        struct record record = {.api = API_notice_exception};
        record.range.id = EXCEPTION_SHUTDOWN;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++) {
            ALL_REDUCE(job, rank, WORLD, 16);
            wait_done(job, rank, API_cudaStreamSynchronize, 0);
        }
        if (shuts_down)
            job_record(job, 2, record);
        comm_call_enter(job, 2, API_ncclCommAbort, WORLD);
        call_leave(job, 2);
        end(job, 2, END_EXIT, 0, false);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 2) {
                ALL_REDUCE(job, rank, WORLD, 16);
                wait_enter(job, rank, API_cudaStreamSynchronize, 0);
            }
        ticks(job, 12000);
        const struct found *found = expect(job, shuts_down ? "DC206" : "DC205");
        assert_string_equal(found->ranks[1], "2");
        assert_has(found->call[1],
                   shuts_down ? "exited with status 0" : "aborted the communicator");
        job_free(job);
    }
}

/* Rank 3 does not come. A watchdog aborts the communicator, of a rank that waits or of rank 3
 * itself; the wait is why it did, however short it was. */
static void a_watchdog_acts_on_a_wait(void **state)
{
    static const struct {
        int rank;
        uint64_t after_ms;
        bool exits;
    } cases[] = {{0, 500, false}, {0, 500, true}, {3, 500, false}, {3, 2500, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job *job = job_with_a_step();
        others_wait(job, 0, 2);
        ticks(job, cases[i].after_ms);
        job_thread(job, cases[i].rank, OTHER_THREAD);
        comm_call_enter(job, cases[i].rank, API_ncclCommAbort, WORLD);
        call_leave(job, cases[i].rank);
        if (cases[i].exits)
            end(job, cases[i].rank, END_EXIT, 1, false);
        ticks(job, 12000);
        const struct found *found = expect(job, "DC201");
        assert_int_equal(found->certainty, POSSIBLE);
        assert_string_equal(found->ranks[1], "3");
        assert_string_equal(found->call[1], "never called it");
        job_free(job);
    }
}

/* The exception is why the others wait, also if a signal ends the rank before Python has, and where
 * it was raised is the rank's place, whatever PyTorch's other thread does meanwhile. */
static void killed_after_an_exception(void **state)
{
    (void)state;
    for (int number = 9; number <= 15; number += 6) {
        struct job *job = job_new(RANKS);
        struct record record = {.api = API_notice_exception, .stack = RAISED_STACK},
                      aborts = {.api = API_cudaDeviceSynchronize,
                                .phase = RECORD_ENTER,
                                .stack = RAISED_STACK + 1};
        record.range.id = EXCEPTION_UNCAUGHT;
        job_init(job, WORLD, 0, RANKS - 1);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 2) {
                ALL_REDUCE(job, rank, WORLD, 16);
                wait_enter(job, rank, API_cudaStreamSynchronize, 0);
            }
        job_record(job, 2, record);
        job_thread(job, 2, OTHER_THREAD);
        job_record(job, 2, aborts);
        ticks(job, 2000);
        for (int rank = RANKS - 1; rank >= 0; rank--)
            end(job, rank, END_SIGNAL, number, false);
        ticks(job, 12000);
        const struct found *found = expect(job, "DC205");
        assert_string_equal(found->ranks[1], "2");
        assert_has(found->what, "rank 2 is ending, while ranks 0-1,3 wait");
        assert_int_equal(found->stack[1], RAISED_STACK);
        job_free(job);
    }
}

/* Both raise at the same time: the launcher terminates the one that is slower to end. */
static void all_raise(void **state)
{
    (void)state;
    struct job *job = job_new(2);
    struct record record = {.api = API_notice_exception};
    record.range.id = EXCEPTION_UNCAUGHT;
    job_init(job, WORLD, 0, 1);
    for (int rank = 0; rank < 2; rank++) {
        ALL_REDUCE(job, rank, WORLD, 16);
        wait_done(job, rank, API_cudaStreamSynchronize, 0);
    }
    for (int rank = 0; rank < 2; rank++)
        job_record(job, rank, record);
    end(job, 1, END_EXIT, 1, false);
    end(job, 0, END_SIGNAL, 15, false);
    ticks(job, 12000);
    const struct found *found = expect(job, "DC205");
    assert_string_equal(found->ranks[0], "0");
    job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exception_is_known_after_the_shutdown),
        cmocka_unit_test(leavers_are_one_side),
        cmocka_unit_test(an_abort_is_the_programs_or_pythons),
        cmocka_unit_test(a_watchdog_acts_on_a_wait),
        cmocka_unit_test(killed_after_an_exception),
        cmocka_unit_test(all_raise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
