/* Where the ranks are is stored with the findings, in one transaction: a reader sees both or
 * neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "collector/collector_state.h"
#include "lib/trace/store.h"
#include "tests/unit/trace_files.h"
#include "tests/unit/verdict.h"

#define WORLD UINT64_C(0x5ae7000000000001)

enum { RANKS = 3 };

static int issued_on_disk(const char *path, int *rows)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database,
                                        "SELECT count(*), coalesce(sum(issued), 0) FROM "
                                        "member_state",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    *rows = sqlite3_column_int(statement, 0);
    int issued = sqlite3_column_int(statement, 1);
    sqlite3_finalize(statement);
    sqlite3_close(database);
    return issued;
}

static void add_processes(struct analyzer *analyzer, struct store *store)
{
    for (int i = 0; i < RANKS; i++) {
        struct error err;
        const struct process_info info = {
            .pid = 1000 + i, .rank = i, .world_size = RANKS, .host = "a", .boot_id = "b"};
        assert_int_equal(analyzer_add_process(analyzer, i, &info), 0);
        assert_true(store_process(store, &info, &err) >= 0);
    }
}

static void feed_all(struct analyzer *analyzer, struct job *job)
{
    struct record record;
    int rank;
    for (size_t i = 0; job_event(job, i, &rank, &record); i++)
        assert_int_equal(analyzer_feed(analyzer, rank < 0 ? 0 : rank, &record), 0);
}

static void states_are_in_the_transaction(void **state)
{
    char path[PATH_MAX];
    int rows;
    struct error err;
    struct store *store;
    snprintf(path, sizeof path, "%s", scratch_path(state, "a.db"));
    assert_int_equal(store_open(&store, path, &err), 0);
    struct job *job = job_new(RANKS);
    job_init(job, WORLD, 0, RANKS - 1);
    for (int rank = 0; rank < RANKS; rank++)
        ALL_REDUCE(job, rank, WORLD, 8);
    const struct analyzer_options options = {0};
    struct analyzer *analyzer = analyzer_new(&options);
    add_processes(analyzer, store);
    feed_all(analyzer, job);
    struct collector_state *states = collector_state_new();
    const struct state_source source = {.store = store, .analyzer = analyzer, .records = 1};

    assert_int_equal(store_begin(store, &err), 0);
    assert_int_equal(collector_state_write(states, &source, true, &err), 0);
    assert_int_equal(issued_on_disk(path, &rows), 0);
    assert_int_equal(rows, 0);
    store_rollback(store);
    collector_state_forget(states);

    assert_int_equal(store_begin(store, &err), 0);
    assert_int_equal(collector_state_write(states, &source, true, &err), 0);
    assert_int_equal(store_commit(store, &err), 0);
    assert_int_equal(issued_on_disk(path, &rows), RANKS);
    assert_int_equal(rows, RANKS);

    collector_state_free(states);
    analyzer_free(analyzer);
    job_free(job);
    assert_int_equal(store_close(store, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(states_are_in_the_transaction, scratch_make,
                                        scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
