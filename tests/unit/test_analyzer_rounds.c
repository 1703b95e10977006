/* Which operations are an iteration, where the program names none: a rank that is late in each of a
 * hundred equal operations is late in a hundred iterations, not in twenty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 3, LATE = 1, GRADIENTS = 0x10, OPERATIONS = 100, LATE_MS = 8, LONG_MS = 100 };

static void reduce(struct job *job, int rank)
{
    ALL_REDUCE(job, rank, WORLD, 1000, .stream = GRADIENTS);
    wait_enter(job, rank, API_cudaStreamSynchronize, GRADIENTS);
}

/* The others begin `gap_ms` after the operation before. */
static void late_operation(struct job *job, uint64_t gap_ms)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != LATE)
            reduce(job, rank);
    job_sleep_ms(job, gap_ms);
    for (int rank = 0; rank < RANKS; rank++)
        if (rank != LATE)
            gpu_started(job, rank, WORLD, GRADIENTS);
    job_sleep_ms(job, LATE_MS);
    reduce(job, LATE);
    gpu_started(job, LATE, WORLD, GRADIENTS);
    job_sleep_us(job, 100);
    for (int rank = 0; rank < RANKS; rank++)
        gpu_done(job, rank, WORLD, GRADIENTS);
    for (int rank = 0; rank < RANKS; rank++)
        call_leave(job, rank);
}

/* Every so many operations one comes after a longer gap. */
static void expect_notes(int operations, int period, uint64_t gap_ms, const char *expected)
{
    struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int number = 0; number < operations; number++)
        late_operation(job, number % period ? 0 : gap_ms);
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    job_analyze(job, 0, &verdict);
    assert_int_equal(verdict.count, 0);
    assert_string_equal(verdict.notes, expected);
    job_free(job);
}

/* Times are read every millisecond: now and then an operation seems to begin later by one. */
static void readings_are_no_iterations(void **state)
{
    (void)state;
    expect_notes(OPERATIONS, OPERATIONS, 0, "DC601:1 ");
    expect_notes(OPERATIONS, 5, 1, "DC601:1 ");
    expect_notes(OPERATIONS, 4, 1, "DC601:1 ");
}

/* What a step computes is no pause. Twenty steps are too few to see that they are iterations. */
static void steps_are_no_pauses(void **state)
{
    (void)state;
    expect_notes(OPERATIONS, 5, LONG_MS, "DC601:1 ");
    expect_notes(OPERATIONS, 10, LONG_MS, "DC601:1 ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_no_iterations),
        cmocka_unit_test(steps_are_no_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
