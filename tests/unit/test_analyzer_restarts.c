/* Jobs that an elastic launcher starts again: DC205 of the rank that ended is what the job got
 * over, if it did. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD(incarnation) (UINT64_C(0x5ae7000000000001) + (incarnation))
#define OTHER(incarnation) (UINT64_C(0xc0de000000000001) + (incarnation))

enum { RANKS = 4, OTHER_STREAM = 0x80 };

/* Steps of all ranks of an incarnation, on both communicators. */
static void train(struct job *job, int incarnation, int steps)
{
    int first = incarnation * RANKS;
    job_init(job, WORLD(incarnation), first, first + RANKS - 1);
    job_init(job, OTHER(incarnation), first, first + RANKS - 1);
    for (int step = 0; step < steps; step++)
        for (int process = first; process < first + RANKS; process++) {
            ALL_REDUCE(job, process, WORLD(incarnation), 16);
            ALL_REDUCE(job, process, OTHER(incarnation), 32, .stream = OTHER_STREAM);
            wait_done(job, process, API_cudaStreamSynchronize, 0);
            wait_done(job, process, API_cudaStreamSynchronize, OTHER_STREAM);
        }
}

/* Rank 2 ends; the others wait for it, on both communicators, until the launcher ends them. */
static void crash(struct job *job, int incarnation, enum end_how how, int value,
                  uint64_t launcher_ms)
{
    int first = incarnation * RANKS;
    for (int process = first; process < first + RANKS; process++)
        if (process != first + 2) {
            ALL_REDUCE(job, process, WORLD(incarnation), 64);
            ALL_REDUCE(job, process, OTHER(incarnation), 64, .stream = OTHER_STREAM);
            wait_enter(job, process, API_cudaStreamSynchronize, 0);
        }
    end(job, first + 2, how, value, false);
    if (launcher_ms)
        ticks(job, launcher_ms);
    for (int process = first; process < first + RANKS; process++)
        if (process != first + 2)
            end(job, process, END_SIGNAL, SIGTERM, false);
}

static void leave(struct job *job, int incarnation)
{
    for (int process = incarnation * RANKS; process < (incarnation + 1) * RANKS; process++)
        end(job, process, END_EXIT, 0, false);
}

/* Fast and slow launchers, and restarts that are at work before the first look at the end of
 * rank 2. */
static void restart_gets_over_a_crash(void **state)
{
    (void)state;
    static const struct {
        enum end_how how;
        int value;
    } ends[] = {{END_SIGNAL, SIGKILL}, {END_SIGNAL, SIGABRT}, {END_EXIT, 1}};
    static const uint64_t launcher_ms[] = {0, 3000}, restart_ms[] = {0, 3000};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            struct job *job = job_new(2 * RANKS);
            struct verdict verdict;
            train(job, 0, 3);
            crash(job, 0, ends[i].how, ends[i].value, launcher_ms[k % 2]);
            ticks(job, restart_ms[k / 2]);
            job_restart(job, RANKS);
            train(job, 1, 5);
            ticks(job, 3000);
            expect_in(job, &verdict, NULL);
            assert_string_equal(verdict.resolved, "DC205:2 ");
            leave(job, 1);
            ticks(job, 3000);
            expect_in(job, &verdict, NULL);
            assert_string_equal(verdict.resolved, "DC205:2 ");
            job_free(job);
        }
}

/* Started, connected, but no operation yet: the job is not over it. */
static void restart_that_does_nothing_gets_over_nothing(void **state)
{
    (void)state;
    struct job *job = job_new(2 * RANKS);
    train(job, 0, 3);
    crash(job, 0, END_SIGNAL, SIGKILL, 0);
    job_restart(job, RANKS);
    ticks(job, 3000);
    expect(job, "DC205");
    train(job, 1, 0);
    ticks(job, 3000);
    expect(job, "DC205");
    job_free(job);
}

static void last_crash_stays(void **state)
{
    (void)state;
    struct job *job = job_new(3 * RANKS);
    struct verdict verdict;
    train(job, 0, 3);
    crash(job, 0, END_SIGNAL, SIGKILL, 0);
    job_restart(job, RANKS);
    train(job, 1, 3);
    crash(job, 1, END_SIGNAL, SIGSEGV, 500);
    ticks(job, 3000);
    const struct found *found = expect_in(job, &verdict, "DC205");
    assert_true(found->comm == WORLD(1) || found->comm == OTHER(1));
    assert_string_equal(verdict.resolved, "DC205:2 ");
    job_restart(job, 2 * RANKS);
    train(job, 2, 3);
    leave(job, 2);
    ticks(job, 3000);
    expect_in(job, &verdict, NULL);
    assert_string_equal(verdict.resolved, "DC205:2 DC205:2 ");
    job_free(job);
}

/* A program that hangs by itself hangs again: a restart mends nothing. */
static void missing_rank_stays(void **state)
{
    (void)state;
    struct job *job = job_new(2 * RANKS);
    train(job, 0, 3);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank != 3)
            ALL_REDUCE(job, rank, WORLD(0), 64);
        else
            ALL_REDUCE(job, rank, OTHER(0), 64);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
    ticks(job, 12000);
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 1, false);
    job_restart(job, RANKS);
    train(job, 1, 5);
    leave(job, 1);
    ticks(job, 3000);
    struct verdict verdict;
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 1);
    assert_string_equal(verdict.resolved, "");
    job_free(job);
}

/* Rank 3 had not come to the operation yet when the launcher ended it: it is no second culprit. */
static void only_the_cause_is_named(void **state)
{
    (void)state;
    struct job *job = job_new(RANKS);
    train(job, 0, 3);
    for (int rank = 0; rank < 2; rank++) {
        ALL_REDUCE(job, rank, WORLD(0), 64);
        wait_enter(job, rank, API_cudaStreamSynchronize, 0);
    }
    end(job, 2, END_SIGNAL, SIGABRT, false);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != 2)
            end(job, rank, END_SIGNAL, SIGTERM, false);
    struct verdict verdict;
    const struct found *found = expect_in(job, &verdict, "DC205");
    assert_int_equal(found->sides, 2);
    assert_string_equal(found->ranks[1], "2");
    if (!strstr(found->what, "rank 2 was killed by SIGABRT") ||
        !strstr(found->what, "while ranks 0-1 wait in"))
        fail_msg("%s", found->what);
    job_free(job);
}

/* SIGKILL on one rank and SIGTERM on the others: the first is the cause, in whatever order one look
 * saw them. A job that is ended by SIGTERM, and by SIGKILL where that does not help, has none. */
static void killed_rank_is_the_cause(void **state)
{
    (void)state;
    for (int order = 0; order < 3; order++) {
        struct job *job = job_new(RANKS);
        train(job, 0, 3);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 2) {
                ALL_REDUCE(job, rank, WORLD(0), 64);
                wait_enter(job, rank, API_cudaStreamSynchronize, 0);
            }
        if (order == 0)
            end(job, 2, END_SIGNAL, SIGKILL, false);
        for (int rank = 0; rank < RANKS; rank++)
            if (rank != 2)
                end(job, rank, END_SIGNAL, SIGTERM, false);
        if (order == 2)
            job_sleep_ms(job, 500);
        if (order >= 1)
            end(job, 2, END_SIGNAL, SIGKILL, false);
        ticks(job, 3000);
        struct verdict verdict;
        const struct found *found = expect_in(job, &verdict, order == 2 ? NULL : "DC205");
        if (order < 2)
            assert_string_equal(found->ranks[1], "2");
        job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restart_gets_over_a_crash),
        cmocka_unit_test(restart_that_does_nothing_gets_over_nothing),
        cmocka_unit_test(last_crash_stays),
        cmocka_unit_test(missing_rank_stays),
        cmocka_unit_test(only_the_cause_is_named),
        cmocka_unit_test(killed_rank_is_the_cause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
