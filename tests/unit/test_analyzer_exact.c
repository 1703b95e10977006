/* Exact times come after the operations are done, or before that is known, or never. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/model/exact.h"

enum { SLOT = 2, OTHER = 3, OFFSET = 1000000 };

static struct process *process;

static int make_process(void **state)
{
    (void)state;
    process = calloc(1, sizeof *process);
    if (process)
        process->offset_ns = OFFSET;
    return process ? 0 : -1;
}

static int free_process(void **state)
{
    (void)state;
    exact_free(process);
    free(process);
    return 0;
}

static void time_launch(uint32_t slot, uint64_t launch, uint64_t begin_ns, uint64_t end_ns)
{
    struct record record = {
        .api = API_notice_timed,
        .timed = {.slot = slot, .launch = launch, .begin_ns = begin_ns, .end_ns = end_ns}};
    struct event event = {.process = process, .record = &record};
    assert_int_equal(exact_feed(&event), ENGINE_OK);
}

static void pass(uint32_t slot, uint64_t launch)
{
    exact_pass(process, slot, launch,
               &(struct passed){.number = launch, .started_ns = 1, .done_ns = 2});
}

static void expect_passed(uint32_t index, uint64_t number, uint64_t started_ns, uint64_t done_ns)
{
    assert_true(index < process->passed.count);
    assert_int_equal(process->passed.operation[index].number, number);
    assert_int_equal(process->passed.operation[index].started_ns, started_ns);
    assert_int_equal(process->passed.operation[index].done_ns, done_ns);
}

static void nothing_waits_without_exact_times(void **state)
{
    (void)state;
    pass(SLOT, 1);
    expect_passed(0, 1, 1, 2);
    assert_false(exact_is_complete(process));
}

static void times_come_late(void **state)
{
    (void)state;
    time_launch(RECORD_NO_SLOT, 0, 0, 0); /* there will be some */
    pass(SLOT, 1);
    pass(SLOT, 1); /* two operations of one group */
    pass(OTHER, 1);
    pass(SLOT, 2);
    assert_int_equal(process->passed.count, 0);
    time_launch(SLOT, 1, 10, 20);
    assert_int_equal(process->passed.count, 2);
    expect_passed(0, 1, OFFSET + 10, OFFSET + 20);
    expect_passed(1, 1, OFFSET + 10, OFFSET + 20);
    time_launch(OTHER, 1, 30, 40);
    time_launch(SLOT, 2, 50, 60);
    expect_passed(3, 2, OFFSET + 50, OFFSET + 60);
    assert_true(exact_is_complete(process));
}

static void times_come_early(void **state)
{
    (void)state;
    time_launch(SLOT, 1, 10, 20);
    pass(SLOT, 1);
    expect_passed(0, 1, OFFSET + 10, OFFSET + 20);
    assert_true(exact_is_complete(process));
}

/* That of a later launch shows that there will be none; so does the end. */
static void times_never_come(void **state)
{
    (void)state;
    time_launch(RECORD_NO_SLOT, 0, 0, 0);
    for (uint64_t launch = 1; launch <= 4; launch++)
        pass(SLOT, launch);
    time_launch(SLOT, 2, 10, 20);
    assert_int_equal(process->passed.count, 2);
    expect_passed(0, 1, 1, 2);
    expect_passed(1, 2, OFFSET + 10, OFFSET + 20);
    exact_end(process);
    assert_int_equal(process->passed.count, 4);
    expect_passed(3, 4, 1, 2);
    assert_false(exact_is_complete(process));
}

/* Memory is bounded: of very many that wait the oldest are handed on. */
static void not_all_can_wait(void **state)
{
    enum { MANY = 100000 };
    (void)state;
    time_launch(RECORD_NO_SLOT, 0, 0, 0);
    for (uint64_t launch = 1; launch <= MANY; launch++)
        pass(SLOT, launch);
    assert_true(process->passed.count > MANY / 2 && process->passed.count < MANY);
    expect_passed(0, 1, 1, 2);
    exact_end(process);
    assert_int_equal(process->passed.count, MANY);
    expect_passed(MANY - 1, MANY, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nothing_waits_without_exact_times, make_process,
                                        free_process),
        cmocka_unit_test_setup_teardown(times_come_late, make_process, free_process),
        cmocka_unit_test_setup_teardown(times_come_early, make_process, free_process),
        cmocka_unit_test_setup_teardown(times_never_come, make_process, free_process),
        cmocka_unit_test_setup_teardown(not_all_can_wait, make_process, free_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
