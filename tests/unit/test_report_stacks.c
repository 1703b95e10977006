/* The stacks of a job that hangs for long, captured again and again: of each process the newest
 * stay, and the work grows as the notices. It is counted, not timed: report_stacks.c is compiled so
 * that each basic block that it executes is a step (tests/unit/CMakeLists.txt). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cmd/report/report_stacks.h"
#include "lib/trace/names.h"

enum { THREADS = 5, FEW_CAPTURES = 1000, TIMES = 8 };

static uint64_t steps;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

/* Steps of noting `captures` of each process, which come in turn. */
static uint64_t steps_of(int processes, int captures)
{
    struct standings standings = {0};
    steps = 0;
    for (int capture = 1; capture <= captures; capture++)
        for (int process = 0; process < processes; process++)
            for (uint32_t thread = 0; thread < THREADS; thread++) {
                const struct record record = {
                    .api = API_notice_thread_stack,
                    .stack = (uint64_t)capture,
                    .standing = {.thread = thread, .capture = (uint64_t)capture}};
                standings_note(&standings, process, &record, (uint64_t)capture);
            }
    standings_end(&standings);
    uint64_t counted = steps;
    assert_false(standings.failed);
    assert_int_equal(standings.count, processes * THREADS);
    for (int i = 0; i < standings.count; i++)
        assert_int_equal(standings.standing[i].stack, captures);
    standings_free(&standings);
    return counted;
}

static void work_grows_as_the_notices(void **state)
{
    (void)state;
    for (int processes = 1; processes <= 100; processes *= 10) {
        uint64_t few = steps_of(processes, FEW_CAPTURES);
        uint64_t many = steps_of(processes, TIMES * FEW_CAPTURES);
        print_message("%d processes: %llu steps, %d times as many notices: %llu\n", processes,
                      (unsigned long long)few, TIMES, (unsigned long long)many);
        assert_true(few > 0 && 2 * many < 3 * TIMES * few); /* a scan for each notice: 64 times */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_grows_as_the_notices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
