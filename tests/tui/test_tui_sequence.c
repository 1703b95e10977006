/* The model of the sequence view: who called what, and where the ranks part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/tui/state_files.h"
#include "tui/operations.h"

/* --- sequence --- */

static void sequence_shows_who_calls_what(void **state)
{
    const char *folder = *state;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 4);
    struct source source;
    struct rows rows;
    struct query query = {.view = VIEW_SEQUENCE, .number = NUMBER_LAST, .ascii = true};
    for (int rank = 0; rank < 4; rank++) {
        state_member(store, rank, rank, 4, rank == 3 ? 1 : 2, 1, 1);
        state_call(store, rank, rank, 0, 8, 1000);
        if (rank == 1)
            state_call(store, rank, rank, 1, 0, 2000); /* NCCL drops it: the next has its number */
        if (rank < 3)
            state_call(store, rank, rank, 1, rank == 2 ? 16 : 8, 2000);
    }
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &query, &rows);
    assert_int_equal(query.number, 1);
    assert_int_equal(rows.count, 2);
    assert_string_equal(state_cell(&rows, 0, 1), "====");
    assert_string_equal(state_cell(&rows, 0, 3), "");
    assert_string_equal(state_cell(&rows, 1, 0), "#1");
    assert_string_equal(state_cell(&rows, 1, 1), "==#.");
    assert_string_equal(state_cell(&rows, 1, 2), "AllReduce(8, float32, sum)");
    assert_string_equal(state_cell(&rows, 1, 3), "2: AllReduce(16, float32, sum)");
    rows_free(&rows);
    source_close_all(&source);
}

/* Two ranks of `count` calls each, rank 1 with another one at `place`; `apart`: all of rank 0's
 * before rank 1's. */
static void make_sequence(void **state, uint64_t count, uint64_t place, bool apart)
{
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
    for (uint64_t i = 0; i < count * 2; i++) {
        int rank = (int)(apart ? i / count : i % 2);
        uint64_t number = apart ? i % count : i / 2;
        state_call(store, rank, rank, number, rank == 1 && number == place ? 7 : 8, 1000 + i);
    }
    for (int rank = 0; rank < 2; rank++)
        state_member(store, rank, rank, 2, count, count, count);
    state_end(store);
}

static void divergence_is_found(void **state, uint64_t count, uint64_t place, bool apart)
{
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct query query = {.view = VIEW_SEQUENCE, .number = NUMBER_DIVERGENCE, .ascii = true};
    make_sequence(state, count, place, apart);
    state_open(&source, &folder);
    state_load(&source, &query, &rows);
    if (place < count) {
        assert_int_equal(query.number, place);
        for (int i = 0; i < rows.count; i++) {
            assert_string_equal(state_cell(&rows, i, 1), rows.row[i].id == place + 1 ? "=#" : "==");
            assert_string_equal(state_cell(&rows, i, 3),
                                rows.row[i].id == place + 1 ? "1: AllReduce(7, float32, sum)" : "");
        }
    } else {
        assert_string_equal(rows.line[1].text, "All ranks called the same, as far as they went.");
        assert_int_equal(query.number, count - 1);
    }
    rows_free(&rows);
    source_close_all(&source);
}

static void divergence_in_a_block_between(void **state)
{
    divergence_is_found(state, 5000, 2500, false);
}
static void divergence_in_the_first_block(void **state)
{
    divergence_is_found(state, 5000, 0, false);
}
static void divergence_in_the_last_block(void **state)
{
    divergence_is_found(state, 5000, 4999, false);
}
static void divergence_of_ranks_far_apart(void **state)
{
    divergence_is_found(state, 5000, 1500, true);
}
static void no_divergence(void **state)
{
    divergence_is_found(state, 5000, 5000, false);
}

static void divergence_where_the_finding_says(void **state)
{
    const char *folder = *state;
    struct source source;
    uint64_t number = 0;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
    state_finding(store, 1, "DC201", "error", "open", 5);
    state_finding(store, 2, "DC102", "error", "open", 4100);
    state_end(store);
    state_open(&source, &folder);
    assert_int_equal(operations_divergence(&source, state_comm, &number, NULL), 1);
    assert_int_equal(number, 4100);
    source_close_all(&source);
}

/* A block that one rank has filled and the other has not has one hash: nothing to compare it with.
 */
static void divergence_in_a_block_that_is_not_full(void **state)
{
    const char *folder = *state;
    struct source source;
    uint64_t number = 0;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
    for (uint64_t i = 0; i < 2100; i++)
        state_call(store, 0, 0, i, 8, 1000 + i);
    for (uint64_t i = 0; i < 1500; i++)
        state_call(store, 1, 1, i, i == 1200 ? 7 : 8, 5000 + i);
    state_end(store);
    state_open(&source, &folder);
    assert_int_equal(operations_divergence(&source, state_comm, &number, NULL), 1);
    assert_int_equal(number, 1200);
    source_close_all(&source);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(sequence_shows_who_calls_what),
        ON_SCRATCH(divergence_in_a_block_between),
        ON_SCRATCH(divergence_in_the_first_block),
        ON_SCRATCH(divergence_in_the_last_block),
        ON_SCRATCH(divergence_of_ranks_far_apart),
        ON_SCRATCH(no_divergence),
        ON_SCRATCH(divergence_where_the_finding_says),
        ON_SCRATCH(divergence_in_a_block_that_is_not_full),
    };
    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
