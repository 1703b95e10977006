/* How a rank's iterations close: there is room for all that its operations divide into. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/ranks.h"

enum { OPERATIONS = 32 };
static const uint64_t queued_ns = 1000000, busy_ns = 2000000, wait_ns = 3000000, done_ns = 9000000,
                      apart_ns = 8000000;

/* Each waits in the queue, then beside its rank's work, then for others, and then moves data, and
 * the next begins before it is done: nobody waits for it. */
static void operations_divide_into_four(void **state)
{
    (void)state;
    static const struct process process;
    struct comm comm = {.id = 1};
    struct speed_comm speed_comm = {.comm = &comm};
    struct speed_operation operation[OPERATIONS];
    struct analyzer analyzer = {0};
    struct speed_rank rank = {.key = {.process = &process, .device = -1},
                              .operation = operation,
                              .operation_capacity = OPERATIONS,
                              .first_operation = 1,
                              .operations = OPERATIONS,
                              .has_begun = true,
                              .named = true,
                              .begun = 1,
                              .closed = 1,
                              .newest = 2};
    for (uint64_t i = 0; i < OPERATIONS; i++) {
        uint64_t issued_ns = apart_ns * (i + 1);
        operation[(i + 1) % OPERATIONS] =
            (struct speed_operation){.iteration = 1,
                                     .issued_ns = issued_ns,
                                     .started_ns = issued_ns + queued_ns,
                                     .busy_ns = issued_ns + busy_ns,
                                     .waited_ns = issued_ns + wait_ns,
                                     .done_ns = issued_ns + done_ns,
                                     .comm = &speed_comm,
                                     .peer = -1,
                                     .resolved = true};
    }
    speed_rank_close(&analyzer, &rank, true);
    assert_false(analyzer.failed);
    assert_int_equal(rank.closed, 2);
    free(rank.iteration);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operations_divide_into_four)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
