/* Waits, the timeline and memory, as rows; no terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/tui/state_files.h"

static void waits_are_a_tree(void **state)
{
    static const struct store_wait waits[] = {
        {.id = 0, .depth = 0, .process = 0, .text = "rank 0 waits", .in_cycle = true},
        {.id = 1, .depth = 1, .process = 1, .text = "rank 1 is away"},
        {.id = 2,
         .depth = 2,
         .process = 0,
         .text = "rank 0 waits",
         .in_cycle = true,
         .again = true},
    };
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(store_wait(store, &waits[i], NULL), 0);
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_WAITS, .ascii = true}, &rows);
    assert_true(rows.tree);
    assert_int_equal(rows.count, 3);
    assert_string_equal(state_cell(&rows, 0, 0), "(cycle) rank 0 waits");
    assert_string_equal(state_cell(&rows, 2, 0), "(cycle) (as above) rank 0 waits");
    for (int i = 0; i < 3; i++)
        assert_int_equal(rows.row[i].depth, i);
    assert_int_equal(rows.row[1].target.process, 1);
    rows_free(&rows);
    source_close_all(&source);
}

static void progress(struct store *store, uint64_t started, uint64_t done, uint64_t time_ns)
{
    struct record record = {.api = API_notice_progress,
                            .time_ns = time_ns,
                            .progress = {.started = started, .done = done}};
    assert_int_equal(store_event(store, 0, &record, NULL), 0);
}

static void bars_begin_and_end_with_the_operation(void **state)
{
    const uint64_t second = 1000000000;
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct query query = {.view = VIEW_TIMELINE,
                          .ascii = true,
                          .width = 30,
                          .height = 24,
                          .begin_ns = state_epoch_ns,
                          .end_ns = state_epoch_ns + 10 * second};
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 1);
    state_member(store, 0, 0, 1, 2, 2, 1);
    state_call(store, 0, 0, 0, 8, 2 * second);
    progress(store, 1, 0, 4 * second);
    progress(store, 1, 1, 6 * second);
    state_call(store, 0, 0, 1, 8, 8 * second);
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &query, &rows);
    assert_int_equal(rows.count, 1);
    assert_string_equal(state_cell(&rows, 0, 1), "    ====####:   ====");
    rows_free(&rows);
    source_close_all(&source);
}

/* An hour into a hang no row of the last 10 s is about it: the members' states are. */
static void a_hang_is_drawn_however_long_it_lasts(void **state)
{
    const uint64_t hour = 3600000000000;
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct query query = {.view = VIEW_TIMELINE, .ascii = true, .width = 30, .height = 24};
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
    state_member(store, 0, 0, 2, 2, 2, 1);
    state_member(store, 1, 1, 2, 1, 1, 1);
    state_call(store, 0, 0, 0, 8, 1000);
    progress(store, 1, 1, 2000);
    state_call(store, 1, 1, 0, 8, 1000);
    state_end(store);
    state_open(&source, &folder);
    source.now_ns = state_epoch_ns + hour;
    state_load(&source, &query, &rows);
    assert_int_equal(rows.count, 2);
    assert_string_equal(state_cell(&rows, 0, 0), "! 1"); /* the one that is missing comes first */
    assert_string_equal(state_cell(&rows, 0, 1), "!!!!!!!!!!!!!!!!!!!!");
    assert_string_equal(state_cell(&rows, 1, 1), "####################");
    rows_free(&rows);
    query = (struct query){.view = VIEW_TIMELINE, .ascii = true, .width = 30, .begin_ns = 1};
    state_load(&source, &query, &rows); /* key 0: all of it */
    assert_true(query.end_ns - query.begin_ns >= hour - 1000000);
    rows_free(&rows);
    source_close_all(&source);
}

static void memory_in_flight_comes_first(void **state)
{
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
    for (int rank = 0; rank < 2; rank++) {
        state_call(store, rank, rank, 0, 1024, 1000);
        state_member(store, rank, rank, 2, 1, 1, rank == 1 ? 0 : 1);
    }
    state_finding(store, 1, "DC301", "error", "open", 0);
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_MEMORY}, &rows);
    assert_int_equal(rows.count, 3);
    assert_string_equal(state_cell(&rows, 0, 1), "DC301");
    assert_string_equal(state_cell(&rows, 1, 0), "1");
    assert_string_equal(state_cell(&rows, 1, 2), "4.0 KiB");
    assert_string_equal(state_cell(&rows, 1, 3), "in flight");
    assert_string_equal(state_cell(&rows, 2, 3), "done");
    rows_free(&rows);
    source_close_all(&source);
}

/* 256 float32 elements of each of 4 ranks: the root of a Gather receives, of a Scatter sends, all.
 */
static void memory_of_a_root_is_that_of_all_ranks(void **state)
{
    static const uint16_t apis[] = {API_ncclGather, API_ncclScatter};
    enum { RANKS = 4 };
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, RANKS);
    for (uint64_t number = 0; number < 2; number++)
        for (int rank = 0; rank < RANKS; rank++) {
            struct record record = {.api = apis[number],
                                    .phase = RECORD_ENTER,
                                    .time_ns = 1000,
                                    .serial = number * 2 + 1,
                                    .op = {.comm = state_comm,
                                           .number = number,
                                           .count = 256,
                                           .sendbuff = 0x10000 + number * 0x10000,
                                           .recvbuff = 0x40000 + number * 0x10000,
                                           .datatype = TYPE_FLOAT32,
                                           .rank = rank}};
            assert_int_equal(store_event(store, rank, &record, NULL), 0);
        }
    for (int rank = 0; rank < RANKS; rank++)
        state_member(store, rank, rank, RANKS, 2, 2, 2);
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_MEMORY}, &rows);
    assert_int_equal(rows.count, 2 * RANKS);
    for (int i = 0; i < rows.count; i++)
        assert_string_equal(state_cell(&rows, i, 2), i < 2 ? "4.0 KiB" : "1.0 KiB");
    rows_free(&rows);
    source_close_all(&source);
}

static void a_stream_says_what_it_waits_for(void **state)
{
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 3);
    for (int rank = 0; rank < 3; rank++) {
        state_call(store, rank, rank, 0, 8, 1000);
        if (rank == 0)
            state_call(store, rank, rank, 1, 8, 2000);
        state_member(store, rank, rank, 3, rank == 0 ? 2 : 1, rank == 0 ? 2 : 1, 1);
    }
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_RANK, .process = 0}, &rows);
    assert_string_equal(state_cell(&rows, rows.count - 2, 0),
                        "stream 0x1000 on device 0, last ncclAllReduce(count=8, float32, sum)");
    assert_string_equal(state_cell(&rows, rows.count - 1, 0),
                        "waits in ncclAllReduce(count=8, float32, sum) #1 of comm 5ae7, "
                        "for ranks 1-2, which have not called it");
    rows_free(&rows);
    source_close_all(&source);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(waits_are_a_tree),
        ON_SCRATCH(bars_begin_and_end_with_the_operation),
        ON_SCRATCH(a_hang_is_drawn_however_long_it_lasts),
        ON_SCRATCH(memory_in_flight_comes_first),
        ON_SCRATCH(memory_of_a_root_is_that_of_all_ranks),
        ON_SCRATCH(a_stream_says_what_it_waits_for),
    };
    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
