/* Databases read back: several as one stream, growing ones, and those that are not what they should
 * be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>
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
    struct store *a = make(scratch_path(state, "a.db"), "a", 100000),
                 *b = make(scratch_path(state, "b.db"), "b", 100005);
    /* Realtime: a at 100000+t-1000, b at 100005+t-1000. One of a's records is late: its place
     * stays. */
    static const uint64_t times_a[] = {1000, 1010, 1004, 1020},
                          times_b[] = {1000, 1001, 1008, 1030};
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
    refuses(path, "there is no trace");
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
    snprintf(command, sizeof command, "sqlite3 %s 'PRAGMA user_version = 1009'", path);
    if (system(command) == 0)
        refuses(path, "recorded by a pre-release; record again");
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

static uint64_t tell_string(struct store *store, const char *text)
{
    struct record record = {
        .api = API_notice_string,
        .string = {.id = string_id(text, strlen(text)), .bytes = (uint32_t)strlen(text)}};
    memcpy(record.string.text, text, strlen(text));
    assert_int_equal(store_event(store, 0, &record, NULL), 0);
    return record.string.id;
}

/* Python frames come first, whole or, where pieces were lost, as far as they are known; then the
 * native ones. */
static void python_frames_stand_before_native_ones(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct store *store;
    struct error err;
    struct process_info info = {.pid = 1, .host = "one"};
    assert_int_equal(store_open(&store, path, &err), 0);
    store_process(store, &info, NULL);
    uint64_t file = tell_string(store, "train.py"), step = tell_string(store, "step");
    struct record native = {.api = API_notice_stack,
                            .frames = {.id = 70, .count = 2, .address = {0x1000, 0x2000}}};
    struct record piece = {.api = API_notice_python_stack,
                           .python = {.id = 90,
                                      .native = 70,
                                      .count = 4,
                                      .file = {file, file, 555},
                                      .function = {step, 444, step},
                                      .line = {12, 34, 56}}};
    assert_int_equal(store_event(store, 0, &native, NULL), 0);
    assert_int_equal(store_event(store, 0, &piece, NULL), 0);
    assert_int_equal(store_event(store, 0, &piece, NULL), 0); /* reported again */
    piece.python.offset = 3;
    piece.python.line[0] = 78;
    assert_int_equal(store_event(store, 0, &piece, NULL), 0);
    store_close(store, NULL);
    struct trace *trace;
    struct frame frame[8];
    path = scratch_path(state, "a.db");
    assert_int_equal(trace_open(&trace, &path, 1, &err), 0);
    assert_int_equal(trace_frames(trace, 0, 90, false, frame, 8), 6);
    static const struct {
        const char *file, *function;
        int line;
        uint64_t address;
    } wanted[] = {
        {"train.py", "step", 12, 0}, {"train.py", "", 34, 0}, {"", "step", 56, 0},
        {"train.py", "step", 78, 0}, {"", "", 0, 0x1000},     {"", "", 0, 0x2000},
    };
    for (int i = 0; i < 6; i++) {
        assert_string_equal(frame[i].file, wanted[i].file);
        assert_string_equal(frame[i].function, wanted[i].function);
        assert_int_equal(frame[i].line, wanted[i].line);
        assert_int_equal(frame[i].address, wanted[i].address);
    }
    assert_int_equal(trace_frames(trace, 0, 90, false, frame, 5), 5);
    assert_int_equal(trace_frames(trace, 0, 70, false, frame, 8), 2);
    assert_int_equal(trace_frames(trace, 0, 91, false, frame, 8), 0);
    trace_close(trace);
}

/* An address at which functions were inlined is several frames of a stack. */
static void inlined_functions_are_frames(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct store *store;
    struct process_info info = {.pid = 1, .host = "one"};
    assert_int_equal(store_open(&store, path, NULL), 0);
    store_process(store, &info, NULL);
    struct record native = {.api = API_notice_stack,
                            .frames = {.id = 70, .count = 2, .address = {0x1000, 0x2000}}};
    assert_int_equal(store_event(store, 0, &native, NULL), 0);
    store_symbol(store, 0, 0x1000, "/bin/train", "reduce", "train.c", 7, NULL);
    store_inlined(store, 0, 0x1000, 2, "main", "main.c", 9, NULL);
    store_inlined(store, 0, 0x1000, 1, "run", "", 0, NULL);
    store_close(store, NULL);
    static const struct frame wanted[] = {
        {.address = 0x1000, .function = "reduce", .file = "train.c", .line = 7},
        {.address = 0x1000, .function = "run"},
        {.address = 0x1000, .function = "main", .file = "main.c", .line = 9},
        {.address = 0x2000}};
    struct trace *trace;
    struct frame frame[8];
    path = scratch_path(state, "a.db");
    assert_int_equal(trace_open(&trace, &path, 1, NULL), 0);
    assert_int_equal(trace_frames(trace, 0, 70, false, frame, 8), 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(frame[i].address, wanted[i].address);
        assert_string_equal(frame[i].function, wanted[i].function);
        assert_string_equal(frame[i].file, wanted[i].file);
        assert_int_equal(frame[i].line, wanted[i].line);
        assert_string_equal(frame[i].module, i < 3 ? "/bin/train" : "");
    }
    assert_int_equal(trace_frames(trace, 0, 70, false, frame, 2), 2);
    assert_int_equal(trace_frames(trace, 0, 0x1000, true, frame, 8), 3);
    assert_int_equal(trace_frames(trace, 0, 0x1000, true, frame, 1), 1);
    assert_string_equal(frame[0].function, "reduce");
    trace_close(trace);
}

/* Queries end, whatever a database makes of them: the file is small. */
static void a_query_without_end_is_ended(void **state)
{
    static const char endless[] =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
    struct store *store;
    struct trace *trace;
    const char *path = scratch_path(state, "endless.db");
    assert_int_equal(store_open(&store, path, NULL), 0);
    assert_int_equal(store_close(store, NULL), 0);
    assert_int_equal(trace_open(&trace, &path, 1, NULL), 0);
    sqlite3 *db = trace_database(trace, 0);
    assert_int_equal(sqlite3_exec(db, endless, NULL, NULL, NULL), SQLITE_INTERRUPT);
    assert_int_equal(sqlite3_exec(db, "SELECT count(*) FROM event", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "ATTACH '/tmp/other.db' AS other", NULL, NULL, NULL),
                     SQLITE_AUTH);
    assert_int_equal(sqlite3_exec(db, "SELECT * FROM v_event", NULL, NULL, NULL), SQLITE_ERROR);
    trace_close(trace);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(hosts_are_merged_by_time),
        WITH_SCRATCH(a_growing_database_is_followed),
        WITH_SCRATCH(what_is_no_trace_is_refused),
        WITH_SCRATCH(python_frames_stand_before_native_ones),
        WITH_SCRATCH(inlined_functions_are_frames),
        WITH_SCRATCH(of_a_cut_file_the_beginning_is_read),
        WITH_SCRATCH(a_query_without_end_is_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
