/* Ranks on their way out: why they leave, and how far they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 4, OTHER_THREAD = 9 };

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exception_is_known_after_the_shutdown),
        cmocka_unit_test(leavers_are_one_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
