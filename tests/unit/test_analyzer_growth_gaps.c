/* A program that numbers its iterations may go on anywhere, as after a checkpoint: the distance
 * costs nothing. It is counted, not timed: the analyzer is compiled so that each basic block that
 * it executes is a step (tests/unit/CMakeLists.txt). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 2, ITERATIONS = 30, GAP_AT = 15, STREAM = 0x10 };

static uint64_t steps;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

static uint64_t steps_of(int gap)
{
    struct verdict verdict;
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int i = 0; i < ITERATIONS; i++) {
        char name[32];
        snprintf(name, sizeof name, "iteration %d", i < GAP_AT ? i : i + gap);
        for (int rank = 0; rank < RANKS; rank++) {
            range_push(job, rank, name);
            ALL_REDUCE(job, rank, WORLD, 1000, .stream = STREAM);
            wait_enter(job, rank, API_cudaStreamSynchronize, STREAM);
        }
        job_sleep_ms(job, 50);
        for (int rank = 0; rank < RANKS; rank++) {
            gpu_done(job, rank, WORLD, STREAM);
            call_leave(job, rank);
            range_pop(job, rank);
        }
    }
    for (int rank = 0; rank < RANKS; rank++)
        end(job, rank, END_EXIT, 0, false);
    steps = 0;
    job_analyze(job, 0, &verdict);
    uint64_t counted = steps;
    assert_int_equal(verdict.count, 0);
    job_free(job);
    return counted;
}

static void a_gap_costs_nothing(void **state)
{
    (void)state;
    uint64_t near = steps_of(1000), far = steps_of(1000000);
    print_message("a gap of 1,000: %llu steps; of 1,000,000: %llu\n", (unsigned long long)near,
                  (unsigned long long)far);
    assert_true(near > 0 && far < 2 * near);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_costs_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
