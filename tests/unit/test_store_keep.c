/* --keep: the oldest CUDA records go, all else stays, and every reader learns what is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "lib/trace/store.h"
#include "lib/trace/trace.h"
#include "tests/unit/trace_files.h"

enum { MEGABYTE = 1 << 20, BATCH = 4096, NEWEST_KEPT = MEGABYTE / 256 };

static struct store *open_store(const char *path)
{
    struct store *store;
    struct error err = {""};
    if (store_open(&store, path, &err) < 0)
        fail_msg("%s", err.text);
    return store;
}

static int64_t ask_keep(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

/* One in eight is an allocation, the others are copies, kernels and ranges. */
static struct record numbered_record(uint64_t index)
{
    static const uint16_t bulk[] = {API_cudaMemcpyAsync, API_cudaMemsetAsync, API_cudaLaunchKernel,
                                    API_nvtxRangePush};
    struct record record = {.time_ns = 1000 + index, .serial = index + 1, .thread = 5};
    record.api = index % 8 ? bulk[index % 4] : API_cudaMalloc;
    for (int i = 0; i < 10; i++)
        record.word[i] = index * 0x9e3779b97f4a7c15u;
    return record;
}

/* Stores `count` records of two processes from `first` on. */
static void store_numbered(struct store *store, uint64_t first, uint64_t count)
{
    assert_int_equal(store_begin(store, NULL), 0);
    for (uint64_t i = first; i < first + count; i++) {
        struct record record = numbered_record(i);
        assert_int_equal(store_event(store, i % 2, &record, NULL), 0);
    }
    assert_int_equal(store_commit(store, NULL), 0);
}

static void add_processes(struct store *store)
{
    struct process_info one = process_named("one", 1, 5000), two = process_named("one", 2, 5000);
    assert_int_equal(store_process(store, &one, NULL), 0);
    assert_int_equal(store_process(store, &two, NULL), 1);
}

static void drop_all(struct store *store, const struct keep_limits *limits, uint64_t now_ns)
{
    int dropped;
    while ((dropped = store_keep(store, limits, now_ns, NULL)) == 1)
        ;
    assert_int_equal(dropped, 0);
}

static void the_size_is_bounded(void **state)
{
    const struct keep_limits limits = {.bytes = MEGABYTE};
    const char *path = scratch_path(state, "a.db");
    enum { RECORDS = 30 * BATCH };
    struct store *store = open_store(path);
    uint64_t bytes, largest = 0;
    add_processes(store);
    for (uint64_t i = 0; i < RECORDS; i += BATCH) {
        store_numbered(store, i, BATCH);
        drop_all(store, &limits, 0);
        assert_int_equal(store_size(store, &bytes, NULL), 0);
        largest = bytes > largest ? bytes : largest;
    }
    assert_int_equal(store_close(store, NULL), 0);
    /* A third of all: what does not go, the newest half, and what a piece leaves of its pages. */
    assert_true(largest < 4 * MEGABYTE);
    assert_true(ask_keep(path, "SELECT page_count * page_size FROM pragma_page_count, "
                               "pragma_page_size") < 4 * MEGABYTE);
    assert_int_equal(ask_keep(path, "SELECT count(*) FROM event JOIN api ON number = api "
                                    "WHERE class = 'memory'"),
                     RECORDS / 8);
    assert_int_equal(ask_keep(path, "SELECT sum(records) FROM dropped") +
                         ask_keep(path, "SELECT count(*) FROM event"),
                     RECORDS);
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM event WHERE seq > %d", RECORDS - NEWEST_KEPT);
    assert_int_equal(ask_keep(path, sql), NEWEST_KEPT);
}

static void readers_are_notified(void **state)
{
    const struct keep_limits limits = {.bytes = MEGABYTE};
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    struct trace *trace;
    struct record record;
    int process;
    add_processes(store);
    store_numbered(store, 0, 8 * BATCH);
    assert_int_equal(trace_open(&trace, &path, 1, NULL), 0);
    assert_int_equal(trace_dropped(trace).records, 0);
    drop_all(store, &limits, 0); /* behind the reader's back */
    for (int expected = 0; expected < 2; expected++) {
        assert_int_equal(trace_next(trace, &process, &record, NULL), 1);
        assert_int_equal(record.api, API_notice_dropped);
        assert_int_equal(process, expected);
        assert_true(record.dropped.bulk > 0);
    }
    uint64_t dropped = trace_dropped(trace).records, events = 0;
    assert_int_equal(dropped, ask_keep(path, "SELECT sum(records) FROM dropped"));
    assert_int_equal(trace_dropped(trace).until_ns,
                     4000 + ask_keep(path, "SELECT max(last_ns) FROM dropped"));
    while (trace_next(trace, &process, &record, NULL) == 1) {
        assert_int_not_equal(record.api, API_notice_dropped);
        events++;
    }
    assert_int_equal(events, 8 * BATCH - dropped);
    assert_int_equal(trace_event_count(trace), events);
    trace_close(trace);
    assert_int_equal(store_close(store, NULL), 0);
}

static void old_ones_go_by_age(void **state)
{
    const char *path = scratch_path(state, "a.db");
    enum { RECORDS = 10 * BATCH, AGE = 3 * BATCH };
    const struct keep_limits limits = {.age_ns = AGE};
    struct store *store = open_store(path);
    add_processes(store);
    store_numbered(store, 0, RECORDS);
    drop_all(store, &limits, 1000 + RECORDS);
    assert_int_equal(ask_keep(path, "SELECT sum(records) FROM dropped"), 16384 * 7 / 8);
    assert_int_equal(store_close(store, NULL), 0);
    store = open_store(path); /* goes on where it was */
    drop_all(store, &limits, 1000 + 3 * RECORDS);
    assert_int_equal(ask_keep(path, "SELECT sum(records) FROM dropped"), 2 * 16384 * 7 / 8);
    assert_int_equal(store_close(store, NULL), 0);
}

static void findings_of_before_stay(void **state)
{
    const struct keep_limits limits = {.bytes = MEGABYTE};
    const char *path = scratch_path(state, "a.db");
    struct store_finding finding = {.id = 1,
                                    .code = "DC301",
                                    .severity = "error",
                                    .certainty = "certain",
                                    .state = "open",
                                    .fingerprint = 7};
    struct store *store = open_store(path);
    add_processes(store);
    assert_int_equal(store_finding(store, &finding, NULL), 0);
    assert_int_equal(store_finding(store, &finding, NULL), 0); /* its new state */
    store_numbered(store, 0, 8 * BATCH);
    assert_int_equal(store_close(store, NULL), 0);
    store = open_store(path); /* nothing is missing: the next collector finds it again */
    assert_int_equal(store_finding(store, &finding, NULL), 0);
    assert_int_equal(ask_keep(path, "SELECT count(*) FROM finding"), 1);
    drop_all(store, &limits, 0);
    assert_int_equal(store_close(store, NULL), 0);
    store = open_store(path);
    finding.fingerprint = 8;
    assert_int_equal(store_finding(store, &finding, NULL), 0);
    assert_int_equal(store_finding(store, &finding, NULL), 0);
    assert_int_equal(ask_keep(path, "SELECT count(*) FROM finding"), 2);
    assert_int_equal(ask_keep(path, "SELECT fingerprint FROM finding WHERE id = 1"), 7);
    assert_int_equal(store_close(store, NULL), 0);
}

static void arguments_are_read(void **state)
{
    static const char *const wrong[] = {
        "",       "20", "G",    "0G",   "-1G",    "1.5G",         "20GB",    "20G,",  "500K",
        "20G,2w", "2d", "alls", "all,", "20G,0d", "99999999999T", "20G,2d,", "20G 2d"};
    struct keep_limits limits;
    (void)state;
    assert_int_equal(keep_parse("20G", &limits), 0);
    assert_true(limits.bytes == UINT64_C(20) << 30 && limits.age_ns == 0);
    assert_int_equal(keep_parse("512m,36h", &limits), 0);
    assert_true(limits.bytes == UINT64_C(512) << 20 && limits.age_ns == 129600000000000);
    assert_int_equal(keep_parse("1024K,90s", &limits), 0);
    assert_true(limits.bytes == MEGABYTE && limits.age_ns == 90000000000);
    assert_int_equal(keep_parse("all,2d", &limits), 0);
    assert_true(limits.bytes == 0 && limits.age_ns == 172800000000000);
    assert_int_equal(keep_parse("all", &limits), 0);
    assert_true(limits.bytes == 0 && limits.age_ns == 0);
    assert_int_equal(keep_parse(KEEP_DEFAULT, &limits), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (keep_parse(wrong[i], &limits) == 0)
            fail_msg("taken: %s", wrong[i]);
}

/* A collective or a message of rank 0 or 1, entered and left. */
static void store_operation(struct store *store, uint16_t api, int rank, uint64_t number,
                            uint64_t serial)
{
    struct record enter = {
        .time_ns = 1000 + serial, .serial = serial, .api = api, .phase = RECORD_ENTER, .thread = 5};
    struct record leave = enter;
    enter.op.comm = 77;
    enter.op.rank = rank;
    enter.op.number = number;
    enter.op.count = 10;
    leave.phase = RECORD_LEAVE;
    leave.serial = serial + 1;
    leave.time_ns += 3;
    leave.leave.enter = serial;
    assert_int_equal(store_event(store, rank, &enter, NULL), 0);
    assert_int_equal(store_event(store, rank, &leave, NULL), 0);
}

static void store_progress_notice(struct store *store, uint64_t done)
{
    struct record record = {.time_ns = 1000, .api = API_notice_progress};
    record.progress.started = record.progress.done = done;
    assert_int_equal(store_event(store, 0, &record, NULL), 0);
}

/* Two ranks of one communicator have issued `issued` collectives; rank 1 has done `done`. */
static void store_collectives(struct store *store, uint64_t issued, uint64_t done)
{
    struct member_state member = {.comm = 77,
                                  .nranks = 2,
                                  .issued = issued,
                                  .done = issued,
                                  .where = "",
                                  .phase = "",
                                  .last_call = ""};
    add_processes(store);
    assert_int_equal(store_begin(store, NULL), 0);
    for (uint64_t number = 0; number < issued; number++)
        for (int rank = 0; rank < 2; rank++) {
            store_operation(store, API_ncclAllReduce, rank, number, 4 * number + 1);
            store_progress_notice(store, number);
        }
    assert_int_equal(store_member(store, &member, 0, NULL), 0);
    member.rank = member.process = 1;
    member.done = done;
    assert_int_equal(store_member(store, &member, 0, NULL), 0);
    assert_int_equal(store_commit(store, NULL), 0);
}

static void finished_calls_leave_a_digest(void **state)
{
    enum { CALLS = 12000, DONE = 8000, ROWS = 6 * CALLS };
    const struct keep_limits limits = {.bytes = MEGABYTE};
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    store_collectives(store, CALLS, DONE);
    drop_all(store, &limits, 0);
    assert_int_equal(store_close(store, NULL), 0);
    /* What a member has not done stays, of both; of what is dropped each member's digest has all.
     */
    assert_int_equal(
        ask_keep(path, "SELECT count(*) FROM v_collective WHERE number >= 8000 AND result = 0"),
        2 * (CALLS - DONE));
    assert_int_equal(ask_keep(path, "SELECT count(*) FROM v_collective WHERE number < 8000"), 0);
    assert_int_equal(ask_keep(path, "SELECT sum(calls) FROM v_digest"), 2 * DONE);
    assert_int_equal(ask_keep(path, "SELECT sum(elements) FROM v_digest WHERE rank = 1"),
                     10 * DONE);
    assert_int_equal(ask_keep(path, "SELECT sum(host_ns) FROM v_digest"), 3 * 2 * DONE);
    assert_int_equal(ask_keep(path, "SELECT max(longest_ns) FROM v_digest"), 3);
    assert_int_equal(ask_keep(path, "SELECT count(*) FROM v_digest WHERE hash IS NOT NULL"),
                     2 * (DONE / 1024 + 1));
    assert_int_equal(ask_keep(path, "SELECT count(DISTINCT hash) FROM v_digest"), 1);
    assert_int_equal(ask_keep(path, "SELECT sum(number = 8000) FROM member_start"), 2);
    assert_int_equal(ask_keep(path, "SELECT sum(w1 = 8000) FROM v_event WHERE call = "
                                    "'notice_reached'"),
                     2);
    assert_int_equal(ask_keep(path, "SELECT count(*) FROM v_event WHERE call = 'notice_reached'"),
                     2);
    assert_int_equal(ask_keep(path, "SELECT sum(records) FROM dropped WHERE what = 'calls'") +
                         ask_keep(path, "SELECT count(*) FROM event"),
                     ROWS);
    assert_true(ask_keep(path, "SELECT count(*) FROM v_progress WHERE done = 11999") > 0);
}

/* A member that has left no progress and no LEAVE. */
static void what_is_under_way_stays(void **state)
{
    enum { CALLS = 12000 };
    const struct keep_limits limits = {.bytes = MEGABYTE, .age_ns = 1};
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    struct record open = {.time_ns = 1, .serial = 1, .api = API_cudaStreamSynchronize, .thread = 9};
    open.phase = RECORD_ENTER;
    store_collectives(store, CALLS, 0);
    assert_int_equal(store_event(store, 0, &open, NULL), 0);
    store_numbered(store, 0, 4 * BATCH);
    drop_all(store, &limits, UINT64_C(1) << 40);
    assert_int_equal(store_close(store, NULL), 0);
    assert_int_equal(ask_keep(path, "SELECT min(number) FROM v_collective"), CALLS - 1024);
    assert_int_equal(ask_keep(path, "SELECT count(*) FROM v_wait WHERE returned_ns IS NULL"), 1);
}

/* Between the collectives are messages, and some of a piece are not done. */
static void messages_go_with_the_collectives_around_them(void **state)
{
    enum { CALLS = 12000, DONE = 2000 };
    const struct keep_limits limits = {.bytes = MEGABYTE};
    const char *path = scratch_path(state, "a.db");
    struct member_state member = {.comm = 77,
                                  .nranks = 1,
                                  .issued = CALLS,
                                  .done = DONE,
                                  .where = "",
                                  .phase = "",
                                  .last_call = ""};
    struct store *store = open_store(path);
    add_processes(store);
    assert_int_equal(store_begin(store, NULL), 0);
    store_progress_notice(store, 0); /* so that pieces end between the two */
    store_progress_notice(store, 0);
    for (uint64_t number = 0; number < CALLS; number++) {
        store_operation(store, API_ncclAllReduce, 0, number, 4 * number + 1);
        store_operation(store, API_ncclSend, 0, number, 4 * number + 3);
    }
    assert_int_equal(store_member(store, &member, 0, NULL), 0);
    assert_int_equal(store_commit(store, NULL), 0);
    drop_all(store, &limits, 0);
    assert_int_equal(store_close(store, NULL), 0);
    assert_int_equal(ask_keep(path, "SELECT number FROM member_start"), DONE);
    assert_int_equal(
        ask_keep(path,
                 "SELECT count(*) FROM v_collective WHERE name = 'ncclSend' AND number >= 2000"),
        ask_keep(path, "SELECT count(*) FROM v_collective WHERE name = 'ncclAllReduce'"));
    assert_int_equal(
        ask_keep(path,
                 "SELECT count(*) FROM v_collective WHERE name = 'ncclSend' AND number < 1999"),
        0);
}

static unsigned work; /* of SQLite, in thousands of steps */

static int count_work(void *context)
{
    (void)context;
    work++;
    return 0;
}

static int watch_work(sqlite3 *db, char **message, const struct sqlite3_api_routines *api)
{
    (void)message, (void)api;
    sqlite3_progress_handler(db, 1000, count_work, NULL);
    return SQLITE_OK;
}

/* The work of the largest piece, of a trace of `calls` collectives of two ranks. */
static unsigned most_work(const char *path, uint64_t calls)
{
    const struct keep_limits limits = {.bytes = MEGABYTE};
    struct store *store = open_store(path);
    unsigned most = 0;
    int dropped;
    store_collectives(store, calls, calls);
    do {
        work = 0;
        dropped = store_keep(store, &limits, 0, NULL);
        most = work > most ? work : most;
    } while (dropped == 1);
    assert_int_equal(dropped, 0);
    assert_int_equal(store_close(store, NULL), 0);
    return most;
}

static void a_piece_of_a_large_trace_takes_no_longer(void **state)
{
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch_work), SQLITE_OK);
    unsigned small = most_work(scratch_path(state, "a.db"), 6000),
             large = most_work(scratch_path(state, "b.db"), 24000);
    sqlite3_reset_auto_extension();
    assert_true(small > 100);
    assert_in_range(large, 0, small + small / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_size_is_bounded, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(readers_are_notified, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(old_ones_go_by_age, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(finished_calls_leave_a_digest, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(messages_go_with_the_collectives_around_them, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(what_is_under_way_stays, scratch_make, scratch_remove),
        cmocka_unit_test_setup_teardown(a_piece_of_a_large_trace_takes_no_longer, scratch_make,
                                        scratch_remove),
        cmocka_unit_test_setup_teardown(findings_of_before_stay, scratch_make, scratch_remove),
        cmocka_unit_test(arguments_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
