/* Backward passes counted by the stacks of kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "lib/finding/backward_passes.h"
#include "lib/trace/store.h"
#include "tests/unit/trace_files.h"

enum { BACKWARD = 1, FORWARD = 2 }; /* ids of stacks */

static void add_stacks(const char *path)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "INSERT INTO string VALUES (0, 1, 9, '/x/torch/autograd/graph.py'), "
                     "(0, 2, 9, 'run'), (0, 3, 9, '/x/train.py'); "
                     "INSERT INTO python VALUES (0, 1, 0, 1, 2, 7, 0), (0, 2, 0, 3, 2, 8, 0)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
}

static void add_kernel(struct store *store, uint64_t serial, uint64_t stack, uint16_t flags)
{
    struct record record = {.time_ns = serial,
                            .serial = serial,
                            .api = API_cudaLaunchKernel,
                            .stack = stack,
                            .flags = flags};
    assert_int_equal(store_event(store, 0, &record, NULL), 0);
}

/* A kernel of the second pass is reported late, while the program is in its third forward pass. */
static void what_is_reported_late_begins_no_pass(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct process_info info = process_named("a", 1, 1000);
    struct made_at first = {.serial = 1};
    struct member_calls calls = {.count = 1, .at = &first};
    struct store *store;
    struct trace *trace;
    assert_int_equal(store_open(&store, path, NULL), 0);
    assert_int_equal(store_process(store, &info, NULL), 0);
    add_kernel(store, 10, FORWARD, 0);
    add_kernel(store, 11, BACKWARD, 0);
    add_kernel(store, 12, BACKWARD, 0);
    add_kernel(store, 20, FORWARD, 0);
    add_kernel(store, 21, BACKWARD, 0);
    add_kernel(store, 30, FORWARD, 0);
    add_kernel(store, 31, BACKWARD, RECORD_FLAG_LATE);
    store_close(store, NULL);
    add_stacks(path);
    assert_int_equal(trace_open(&trace, &path, 1, NULL), 0);
    assert_int_equal(backward_passes_count(trace, &calls, 19).passes, 1);
    assert_int_equal(backward_passes_count(trace, &calls, 40).passes, 2);
    trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_reported_late_begins_no_pass, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
