/* Databases read back: several as one stream, growing ones, and those that are not what they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "lib/trace/store.h"
#include "lib/trace/trace.h"
#include "tests/unit/trace_files.h"

/* A database of one process whose clock began at realtime_ns. */
static struct store *make(const char *path, const char *host, uint64_t realtime_ns)
{
    struct store *store;
    struct process_info info = process_named(host, 1, realtime_ns);
    assert_int_equal(store_open(&store, path, NULL), 0);
    assert_int_equal(store_process(store, &info, NULL), 0);
    return store;
}

static void add(struct store *store, int process, uint64_t time_ns, uint64_t serial)
{
    struct record record = {.time_ns = time_ns, .serial = serial, .api = API_cudaMalloc};
    assert_int_equal(store_event(store, process, &record, NULL), 0);
}

static void hosts_are_merged_by_time(void **state)
{
    struct store *a = make(scratch_path(state, "a.db"), "a", 100000), *b = make(scratch_path(state, "b.db"), "b", 100005);
    /* Realtime: a at 100000+t-1000, b at 100005+t-1000. One of a's records is late: its place stays. */
    static const uint64_t times_a[] = {1000, 1010, 1004, 1020}, times_b[] = {1000, 1001, 1008, 1030};
    for (int i = 0; i < 4; i++) {
        add(a, 0, times_a[i], 1 + (uint64_t)i);
        add(b, 0, times_b[i], 11 + (uint64_t)i);
    }
    store_meta(a, "ended", "now", NULL);
    store_close(a, NULL);
    store_close(b, NULL);
    struct trace *trace;
    const char *folder = *state;
    assert_int_equal(trace_open(&trace, &folder, 1, NULL), 0);
    static const uint64_t serials[] = {1, 11, 12, 2, 3, 13, 4, 14};
    struct record record;
    int process;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(trace_next(trace, &process, &record, NULL), 1);
        assert_int_equal(record.serial, serials[i]);
        assert_string_equal(trace_process(trace, process)->host, serials[i] > 10 ? "b" : "a");
    }
    assert_int_equal(trace_next(trace, &process, &record, NULL), 0);
    assert_false(trace_complete(trace));
    trace_close(trace);
}

static void a_growing_database_is_followed(void **state)
{
    struct store *store = make(scratch_path(state, "a.db"), "a", 1000);
    struct trace *trace;
    struct record record;
    int process;
    const char *path = scratch_path(state, "a.db");
    assert_int_equal(trace_open(&trace, &path, 1, NULL), 0);
    assert_int_equal(trace_next(trace, &process, &record, NULL), 0);
    struct process_info newcomer = process_named("a", 2, 1000);
    for (uint64_t round = 1; round < 50; round++) {
        add(store, 0, round, round);
        if (round == 25)
            assert_int_equal(store_process(store, &newcomer, NULL), 1);
        if (round >= 25)
            add(store, 1, round, round);
        assert_int_equal(trace_next(trace, &process, &record, NULL), 0);
        assert_int_equal(trace_refresh(trace, NULL), round == 25);
        for (int p = 0; p <= (round >= 25); p++) {
            assert_int_equal(trace_next(trace, &process, &record, NULL), 1);
            assert_int_equal(process, p);
            assert_int_equal(record.serial, round);
        }
    }
    assert_false(trace_complete(trace));
    store_meta(store, "ended", "now", NULL);
    assert_true(trace_complete(trace));
    store_close(store, NULL);
    trace_close(trace);
}

static void refuses(const char *path, const char *why)
{
    struct trace *trace;
    struct error err = {""};
    assert_int_equal(trace_open(&trace, &path, 1, &err), -1);
    assert_null(trace);
    if (!strstr(err.text, why) || !strstr(err.text, path))
        fail_msg("expected '%s' about %s, got: %s", why, path, err.text);
}

static void what_is_no_trace_is_refused(void **state)
{
    const char *path = scratch_path(state, "missing.db");
    refuses(path, "No such file");
    refuses(*state, "no trace database");
    path = scratch_path(state, "noise.db");
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 5000; i++)
        fputs("not a database\n", file);
    fclose(file);
    refuses(path, "no SQLite database");
    remove(path);
    path = scratch_path(state, "empty.db");
    fclose(fopen(path, "w"));
    refuses(path, "empty");
    remove(path);
    struct store *store = make(scratch_path(state, "a.db"), "a", 1000);
    store_close(store, NULL);
    char command[PATH_MAX + 80];
    path = scratch_path(state, "a.db");
    snprintf(command, sizeof command, "sqlite3 %s 'PRAGMA user_version = 2001'", path);
    if (system(command) == 0)
        refuses(path, "trace schema 2.1");
}

static void of_a_cut_file_the_beginning_is_read(void **state)
{
    struct store *store = make(scratch_path(state, "a.db"), "a", 1000);
    assert_int_equal(store_begin(store, NULL), 0);
    for (uint64_t i = 1; i <= 5000; i++)
        add(store, 0, i << 40, i);
    assert_int_equal(store_commit(store, NULL), 0);
    store_meta(store, "ended", "now", NULL);
    store_close(store, NULL);
    const char *path = scratch_path(state, "a.db");
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    uint64_t before = 5001;
    for (int part = 9; part > 0; part--) {
        assert_int_equal(truncate(path, status.st_size * part / 10), 0);
        struct trace *trace;
        struct error err = {""};
        if (trace_open(&trace, &path, 1, &err) < 0) {
            assert_non_null(strstr(err.text, path));
            continue;
        }
        struct record record;
        int process, got;
        uint64_t count = 0;
        while ((got = trace_next(trace, &process, &record, &err)) == 1)
            assert_int_equal(record.serial, ++count);
        assert_int_equal(got, -1);
        assert_non_null(strstr(err.text, "cut off"));
        assert_true(count < before);
        assert_int_equal(trace_next(trace, &process, &record, &err), 0);
        assert_false(trace_complete(trace));
        before = count;
        trace_close(trace);
    }
    assert_true(before < 5001);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(hosts_are_merged_by_time),
        WITH_SCRATCH(a_growing_database_is_followed),
        WITH_SCRATCH(what_is_no_trace_is_refused),
        WITH_SCRATCH(of_a_cut_file_the_beginning_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
