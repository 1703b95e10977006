/* The store keeps every bit of a record, puts notices together, and refuses what is not its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "lib/finding/finding_store.h"
#include "lib/trace/store.h"
#include "lib/trace/trace.h"
#include "tests/unit/trace_files.h"

enum { RECORDS = 20000 };

static struct store *open_store(const char *path)
{
    struct store *store;
    struct error err = {""};
    if (store_open(&store, path, &err) < 0)
        fail_msg("%s", err.text);
    return store;
}

static void rows_are_the_same_records_again(void **state)
{
    struct store *store = open_store(scratch_path(state, "a.db"));
    struct process_info info = process_named("one", 4711, 5000);
    uint64_t seed = 42;
    assert_int_equal(store_process(store, &info, NULL), 0);
    assert_int_equal(store_process(store, &info, NULL), 0);
    assert_int_equal(store_process_find(store, &info, NULL), 0);
    info.start_ticks++;
    assert_int_equal(store_process_find(store, &info, NULL), -1);
    assert_int_equal(store_process(store, &info, NULL), 1);
    static struct record batch[1000];
    static int processes[1000];
    for (int i = 0; i < RECORDS; i++) {
        batch[i % 1000] = random_record(&seed);
        processes[i % 1000] = i % 2;
        if (i % 1000 < 999)
            continue;
        assert_int_equal(store_begin(store, NULL), 0);
        assert_int_equal(store_events(store, processes, batch, 1000, NULL), 0);
        assert_int_equal(store_commit(store, NULL), 0);
    }
    assert_int_equal(store_close(store, NULL), 0);

    struct trace *trace;
    const char *path = scratch_path(state, "a.db");
    assert_int_equal(trace_open(&trace, &path, 1, NULL), 0);
    assert_int_equal(trace_process_count(trace), 2);
    info.start_ticks--;
    assert_memory_equal(trace_process(trace, 0), &info, sizeof info);
    assert_int_equal(trace_event_count(trace), RECORDS);
    seed = 42;
    struct record record;
    int process, count = 0;
    for (; trace_next(trace, &process, &record, NULL) == 1; count++) {
        struct record expected = random_record(&seed);
        assert_int_equal(process, count % 2);
        assert_memory_equal(&record, &expected, sizeof record);
    }
    assert_int_equal(count, RECORDS);
    trace_close(trace);
}

static void add_string(struct store *store, const char *text, uint32_t bytes)
{
    struct record record = {.api = API_notice_string};
    record.string.id = string_id(text, bytes);
    record.string.bytes = bytes;
    for (uint32_t offset = 0; offset == 0 || offset < bytes; offset += 64) {
        record.string.offset = offset;
        memset(record.string.text, 'x', 64);
        memcpy(record.string.text, text + offset, bytes - offset < 64 ? bytes - offset : 64);
        assert_int_equal(store_event(store, 0, &record, NULL), 0);
    }
}

static void pieces_are_put_together(void **state)
{
    struct store *store = open_store(scratch_path(state, "a.db"));
    struct process_info info = process_named("one", 1, 5000);
    assert_int_equal(store_process(store, &info, NULL), 0);
    char lengthy[1000];
    for (size_t i = 0; i < sizeof lengthy; i += 2)
        memcpy(lengthy + i, "ü", 2); /* two bytes each: pieces end inside characters */
    add_string(store, "iteration 7", 11);
    add_string(store, lengthy + 1, 997);
    add_string(store, lengthy, 64);
    add_string(store, "iteration 7", 11); /* said twice */
    struct record stack = {.api = API_notice_stack};
    stack.frames.id = 99;
    stack.frames.count = 11;
    for (stack.frames.offset = 0; stack.frames.offset < 11; stack.frames.offset += 8) {
        for (uint64_t i = 0; i < 8; i++)
            stack.frames.address[i] = 0x7000 + stack.frames.offset + i;
        assert_int_equal(store_event(store, 0, &stack, NULL), 0);
    }
    struct record lost = {.api = API_notice_string,
                          .string = {.id = 5, .bytes = 100, .offset = 64}};
    assert_int_equal(store_event(store, 0, &lost, NULL), 0); /* its first piece never came */
    struct record noise = {.api = API_notice_string,
                           .string = {.id = 6, .bytes = 10, .offset = 4000000000}};
    assert_int_equal(store_event(store, 0, &noise, NULL), 0);
    assert_int_equal(store_symbol(store, 0, 0x7003, "/lib/a.so", "step", "train.c", 88, NULL), 0);
    assert_int_equal(store_close(store, NULL), 0);

    struct trace *trace;
    const char *path = scratch_path(state, "a.db");
    assert_int_equal(trace_open(&trace, &path, 1, NULL), 0);
    assert_string_equal(trace_string(trace, 0, string_id("iteration 7", 11)), "iteration 7");
    const char *text = trace_string(trace, 0, string_id(lengthy + 1, 997));
    assert_non_null(text);
    assert_int_equal(strlen(text), 997);
    assert_memory_equal(text, lengthy + 1, 997);
    assert_non_null(trace_string(trace, 0, string_id(lengthy, 64)));
    assert_null(trace_string(trace, 0, 5));
    assert_null(trace_string(trace, 1, string_id("iteration 7", 11)));
    struct frame frames[32];
    assert_int_equal(trace_frames(trace, 0, 99, false, frames, 32), 11);
    for (uint64_t i = 0; i < 11; i++)
        assert_int_equal(frames[i].address, 0x7000 + i);
    assert_string_equal(frames[3].function, "step");
    assert_string_equal(frames[3].file, "train.c");
    assert_int_equal(frames[3].line, 88);
    assert_int_equal(trace_frames(trace, 0, 99, false, frames, 5), 5);
    assert_int_equal(trace_frames(trace, 0, 98, false, frames, 5), 0);
    trace_close(trace);
}

static long long ask(const char *path, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    long long value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0)
                                                            : -1;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
}

/* Every second one of many is a text of some length. */
static void all_ranks_of_a_finding_are_kept(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    struct finding finding = {.id = 1, .code = DC201, .what = "w", .todo = "t", .sides = 1};
    finding.side[0] = (struct finding_side){.call = "c", .phase = "p", .where = ""};
    for (int rank = 0; rank < 1000; rank += 2)
        assert_int_equal(rankset_add(&finding.side[0].ranks, rank), 0);
    assert_int_equal(finding_store(store, &finding, NULL), 0);
    rankset_free(&finding.side[0].ranks);
    store_close(store, NULL);
    path = scratch_path(state, "a.db");
    assert_int_equal(ask(path, "SELECT count(*) FROM finding_side WHERE ranks LIKE '0,2,4,%,998'"),
                     1);
}

static void views_give_payloads_their_names(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    struct process_info info = process_named("one", 3, 5000);
    store_process(store, &info, NULL);
    struct record enter = {.api = API_ncclReduce,
                           .phase = RECORD_ENTER,
                           .serial = 10,
                           .time_ns = 1100,
                           .op = {.comm = 0xfedcba9876543210,
                                  .number = 4,
                                  .count = 4096,
                                  .datatype = TYPE_FLOAT16,
                                  .redop = REDOP_MAX,
                                  .root = 2,
                                  .slot = RECORD_NO_SLOT,
                                  .rank = 3,
                                  .launch = 9}};
    struct record leave = {.api = API_ncclReduce,
                           .phase = RECORD_LEAVE,
                           .serial = 11,
                           .time_ns = 1200,
                           .result = 5,
                           .leave = {.enter = 10}};
    struct record wait = {
        .api = API_cudaStreamSynchronize, .phase = RECORD_ENTER, .serial = 12, .time_ns = 1300};
    const struct record *const records[] = {&enter, &leave, &wait};
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_event(store, 0, records[i], NULL), 0);
    struct store_side side = {.ranks = "0-2", .call = "c", .phase = "p", .where = ""};
    struct store_finding finding = {.id = 1,
                                    .code = "DC201",
                                    .severity = "error",
                                    .certainty = "certain",
                                    .state = "open",
                                    .what = "w",
                                    .todo = "t",
                                    .side = &side,
                                    .sides = 1,
                                    .fingerprint = UINT64_MAX};
    assert_int_equal(store_finding(store, &finding, NULL), 0);
    finding.state = "resolved";
    assert_int_equal(store_finding(store, &finding, NULL), 0);
    store_close(store, NULL);
    path = scratch_path(state, "a.db");
    assert_int_equal(
        ask(path, "SELECT count(*) FROM v_collective WHERE communicator = 'fedcba9876543210' AND "
                  "rank = 3 AND number = 4 "
                  "AND name = 'ncclReduce' AND count = 4096 AND datatype = 'float16' AND redop = "
                  "'max' AND root = 2 AND slot IS NULL "
                  "AND launch = 9 AND issued_ns = 5100 AND returned_ns = 5200 AND result = 5"),
        1);
    assert_int_equal(ask(path, "SELECT count(*) FROM v_wait WHERE name = 'cudaStreamSynchronize' "
                               "AND returned_ns IS NULL"),
                     1);
    assert_int_equal(ask(path, "SELECT count(*) FROM v_finding WHERE state = 'resolved' AND ranks "
                               "= '0-2' AND fingerprint = 'ffffffffffffffff'"),
                     1);
    assert_int_equal(ask(path, "SELECT count(*) FROM v_event"), 3);
    static const char *const views[] = {"v_member", "v_memory", "v_launch", "v_progress"};
    for (int i = 0; i < 4; i++) {
        char sql[64];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", views[i]);
        assert_int_equal(ask(path, sql), 0);
    }
    assert_int_equal(ask(path, "PRAGMA application_id"), 0x44445043);
    assert_int_equal(ask(path, "PRAGMA user_version"), 1010);
}

/* Two members that call the same have the same hashes, a third differs in its second block. */
static void blocks_of_operations_are_hashed(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    struct process_info info = process_named("one", 3, 5000);
    store_process(store, &info, NULL);
    struct record record = {.api = API_ncclAllReduce,
                            .phase = RECORD_ENTER,
                            .op = {.comm = 77, .count = 4, .root = -1}};
    static struct record batch[300];
    static const int processes[300];
    for (uint64_t number = 0; number < 2100; number++) {
        for (int rank = 0; rank < 3; rank++) {
            record.op.number = number;
            record.op.rank = rank;
            record.op.count = rank == 2 && number == 1500 ? 5 : 4 + number % 3;
            batch[number % 100 * 3 + (uint64_t)rank] = record;
        }
        if (number % 100 == 99)
            assert_int_equal(store_events(store, processes, batch, 300, NULL), 0);
    }
    store_close(store, NULL);
    path = scratch_path(state, "a.db");
    assert_int_equal(ask(path, "SELECT count(*) FROM operation_block"), 9);
    assert_int_equal(ask(path, "SELECT count(DISTINCT hash) FROM operation_block WHERE block = 0"),
                     1);
    assert_int_equal(ask(path, "SELECT count(*) FROM operation_block a JOIN operation_block b "
                               "USING(comm, block, hash) "
                               "WHERE block = 1 AND a.rank < b.rank"),
                     1);
    assert_int_equal(ask(path, "SELECT count(*) FROM operation_block WHERE block = 2 AND hash = 0"),
                     3);
    assert_int_equal(ask(path, "SELECT count(*) FROM operation_block b JOIN event e USING(seq) "
                               "WHERE e.w1 <> b.block * 1024 "
                               "OR e.w8 >> 32 <> b.rank"),
                     0);
}

/* A transaction that was undone and written again leaves no half of a block's hash. */
static void an_undone_batch_leaves_no_hash(void **state)
{
    struct store *store = open_store(scratch_path(state, "a.db"));
    struct process_info info = process_named("one", 3, 5000);
    store_process(store, &info, NULL);
    struct record record = {
        .api = API_ncclAllReduce, .phase = RECORD_ENTER, .op = {.comm = 77, .root = -1}};
    for (uint64_t number = 0; number < 1024; number++) {
        record.op.number = number;
        for (int again = 0; number == 500 && again < 1; again++) {
            store_begin(store, NULL);
            assert_int_equal(store_event(store, 0, &record, NULL), 0);
            store_rollback(store);
        }
        assert_int_equal(store_event(store, 0, &record, NULL), 0);
    }
    store_close(store, NULL);
    assert_int_equal(
        ask(scratch_path(state, "a.db"), "SELECT count(*) FROM operation_block WHERE hash = 0"), 1);
}

/* What was lost and how a process ended share a row, whichever comes first. */
static void ends_and_losses_share_a_row(void **state)
{
    struct store *store = open_store(scratch_path(state, "a.db"));
    struct record lost = {.api = API_notice_lost, .lost = {.control = 1, .bulk = 2}};
    struct record end = {
        .api = API_notice_end, .time_ns = 99, .end = {.how = END_SIGNAL, .value = 9, .oom = 1}};
    const struct record *const records[] = {&lost, &end, &end, &lost, &lost};
    for (int i = 0; i < 5; i++)
        assert_int_equal(store_event(store, i / 2, records[i], NULL), 0);
    store_close(store, NULL);
    assert_int_equal(
        ask(scratch_path(state, "a.db"),
            "SELECT count(*) FROM process_state WHERE process < 2 AND lost_control = 1 "
            "AND lost_bulk = 2 AND ended AND how = 1 AND value = 9 AND out_of_memory AND end_ns = "
            "99"),
        2);
    assert_int_equal(ask(scratch_path(state, "a.db"),
                         "SELECT count(*) FROM process_state WHERE process = 2 AND lost_bulk = 2 "
                         "AND NOT ended"),
                     1);
}

/* A new tree takes the place of the old one as a whole. */
static void a_tree_of_waits_is_replaced(void **state)
{
    struct store *store = open_store(scratch_path(state, "a.db"));
    for (int tree = 0; tree < 2; tree++)
        for (int i = 0; i < 3 - tree; i++) {
            struct store_wait wait = {.id = i,
                                      .depth = i,
                                      .text = tree ? "new" : "old",
                                      .process = -1,
                                      .in_cycle = i == 1};
            assert_int_equal(store_wait(store, &wait, NULL), 0);
        }
    store_close(store, NULL);
    assert_int_equal(ask(scratch_path(state, "a.db"),
                         "SELECT count(*) FROM wait_state WHERE text = 'new' AND depth = id"),
                     2);
    assert_int_equal(ask(scratch_path(state, "a.db"), "SELECT count(*) FROM wait_state"), 2);
    store = open_store(scratch_path(state, "a.db"));
    assert_int_equal(store_wait(store, NULL, NULL), 0);
    store_close(store, NULL);
    assert_int_equal(ask(scratch_path(state, "a.db"), "SELECT count(*) FROM wait_state"), 0);
}

/* The state of a member is replaced; a database of a pre-release is refused. */
static void members_are_kept_as_they_stand(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    struct member_state member = {.comm = 77,
                                  .rank = 1,
                                  .shown_rank = 5,
                                  .nranks = 2,
                                  .where = "running",
                                  .phase = "",
                                  .last_call = "ncclAllReduce()",
                                  .issued = 3,
                                  .since_ns = 12};
    assert_int_equal(store_member(store, &member, 0, NULL), 0);
    member.issued = 4;
    assert_int_equal(store_member(store, &member, 0, NULL), 0);
    store_close(store, NULL);
    path = scratch_path(state, "a.db");
    assert_int_equal(
        ask(path, "SELECT count(*) FROM member_state WHERE comm = 77 AND rank = 1 AND shown_rank = "
                  "5 AND issued = 4 "
                  "AND \"where\" = 'running' AND last_call = 'ncclAllReduce()' AND since_ns = 12"),
        1);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA user_version = 1009", NULL, NULL, NULL);
    sqlite3_close(db);
    struct error err;
    assert_int_equal(store_open(&store, path, &err), -1);
    assert_non_null(strstr(err.text, "recorded by a pre-release; record again"));
}

static void a_batch_is_kept_or_undone_as_a_whole(void **state)
{
    const char *path = scratch_path(state, "a.db");
    struct store *store = open_store(path);
    struct process_info info = process_named("one", 3, 5000);
    uint64_t position = 7, seed = 3;
    store_process(store, &info, NULL);
    for (int round = 0; round < 2; round++) {
        struct record record = random_record(&seed);
        assert_int_equal(store_begin(store, NULL), 0);
        assert_int_equal(store_event(store, 0, &record, NULL), 0);
        assert_int_equal(store_position_set(store, 0, 511, 100 + (uint64_t)round, NULL), 0);
        if (round == 0)
            assert_int_equal(store_commit(store, NULL), 0);
        else
            store_rollback(store);
    }
    assert_int_equal(store_position_get(store, 0, 511, &position, NULL), 0);
    assert_int_equal(position, 100);
    assert_int_equal(store_position_get(store, 0, 3, &position, NULL), 0);
    assert_int_equal(position, 0);
    char value[8];
    assert_int_equal(store_meta(store, "key", "a longer value", NULL), 0);
    assert_int_equal(store_meta_get(store, "key", value, sizeof value, NULL), 0);
    assert_string_equal(value, "a longe");
    assert_int_equal(store_meta(store, "key", NULL, NULL), 0);
    assert_int_equal(store_meta_get(store, "key", value, sizeof value, NULL), 0);
    assert_string_equal(value, "");
    store_close(store, NULL);
    assert_int_equal(ask(scratch_path(state, "a.db"), "SELECT count(*) FROM event"), 1);
}

int main(void)
{
#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(rows_are_the_same_records_again),
        WITH_SCRATCH(pieces_are_put_together),
        WITH_SCRATCH(all_ranks_of_a_finding_are_kept),
        WITH_SCRATCH(views_give_payloads_their_names),
        WITH_SCRATCH(blocks_of_operations_are_hashed),
        WITH_SCRATCH(an_undone_batch_leaves_no_hash),
        WITH_SCRATCH(ends_and_losses_share_a_row),
        WITH_SCRATCH(a_tree_of_waits_is_replaced),
        WITH_SCRATCH(members_are_kept_as_they_stand),
        WITH_SCRATCH(a_batch_is_kept_or_undone_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
