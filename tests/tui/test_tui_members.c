/* The members of communicators, as rows; no terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tests/tui/state_files.h"
#include "tui/members.h"

static void members_stand_as_their_counts_say(void **state)
{
    static const struct {
        uint64_t issued, started, done;
        int process;
        enum standing standing;
        uint64_t behind;
    } cases[] = {
        {5, 5, 4, 0, STANDS_STARTED, 0}, {5, 4, 4, 1, STANDS_ISSUED, 0},
        {3, 3, 3, 2, STANDS_MISSING, 2}, {5, 5, 5, 3, STANDS_DONE, 0},
        {0, 0, 0, -1, STANDS_UNSEEN, 5},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    const char *folder = *state;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, CASES - 1);
    struct source source;
    struct members members;
    for (int i = 0; i < CASES; i++)
        state_member(store, cases[i].process, i, CASES, cases[i].issued, cases[i].started,
                     cases[i].done);
    state_call(store, 0, 0, 4, 1, 60000000000);
    state_end(store);
    state_open(&source, &folder);
    assert_int_equal(members_load(&members, &source, NULL), 0);
    assert_int_equal(members.comms, 1);
    for (int i = 0; i < CASES; i++) {
        assert_int_equal(members.member[i].standing, cases[i].standing);
        assert_int_equal(members.member[i].behind, cases[i].behind);
        assert_ptr_equal(members_rank(members.comm, i), &members.member[i]);
    }
    assert_null(members_rank(members.comm, CASES));
    assert_int_equal(members.comm->worst, STANDS_MISSING);
    members_free(&members);
    struct rows rows; /* a rank without records is in the list of ranks, too */
    state_load(&source, &(struct query){.view = VIEW_RANKS, .number = NUMBER_LAST, .height = 24},
               &rows);
    assert_int_equal(rows.count, CASES);
    assert_string_equal(state_cell(&rows, CASES - 1, 0), "4");
    assert_string_equal(state_cell(&rows, CASES - 1, 3), "no trace");
    rows_free(&rows);
    source_close_all(&source);
}

static void nobody_is_later_than_the_first_by_less_than_nothing(void **state)
{
    enum { APART = 1024, CELL_LATE = 4 }; /* operations that share a place of the model's table */
    static const struct {
        int process;
        uint64_t number, ms;
    } calls[] = {{0, 0, 1000},     {0, APART, 1001}, {1, 0, 1003},
                 {1, APART, 1005}, {1, 1, 1006},     {0, 1, 1008}};
    const char *folder = *state;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
    struct source source;
    struct rows rows;
    for (int i = 0; i < 2; i++)
        state_member(store, i, i, 2, APART + 1, APART + 1, APART + 1);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        state_call(store, calls[i].process, calls[i].process, calls[i].number, 1,
                   calls[i].ms * 1000000);
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_RANKS, .number = NUMBER_LAST, .height = 24},
               &rows);
    assert_string_equal(state_cell(&rows, 0, CELL_LATE), "2.0 ms");
    assert_string_equal(state_cell(&rows, 1, CELL_LATE), "0.0 ms");
    rows_free(&rows);
    source_close_all(&source);
}

static void a_member_that_two_hosts_know_is_that_of_its_own_host(void **state)
{
    const char *folder = *state;
    struct source source;
    struct members members;
    for (int host = 0; host < 2; host++) {
        struct store *store =
            state_begin(scratch_path(state, host ? "b.db" : "a.db"), host ? "b" : "a", host * 2, 2);
        for (int rank = 0; rank < 4; rank++)
            state_member(store, rank / 2 == host ? rank % 2 : -1, rank, 4, rank / 2 == host ? 7 : 0,
                         7, 7);
        state_end(store);
    }
    state_open(&source, &folder);
    assert_int_equal(members_load(&members, &source, NULL), 0);
    assert_int_equal(members.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(members.member[i].issued, 7);
        assert_int_equal(trace_process(source.trace, members.member[i].process)->rank, i);
    }
    members_free(&members);
    source_close_all(&source);
}

static void ten_thousand_ranks_show_the_one_that_is_missing(void **state)
{
    enum { RANKS = 10000, LATE = 7777 };
    const char *folder = *state;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, RANKS);
    struct source source;
    struct rows rows;
    struct timespec begin, end;
    for (int rank = 0; rank < RANKS; rank++)
        state_member(store, rank, rank, RANKS, 42 - (rank == LATE), 42 - (rank == LATE), 41);
    state_call(store, 0, 0, 41, 1, 60000000000);
    state_end(store);
    state_open(&source, &folder);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    state_load(&source, &(struct query){.view = VIEW_NOW, .ascii = true}, &rows);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) +
                     (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    print_message("10,000 ranks: %.3f s\n", seconds);
    assert_true(seconds < 2);
    assert_int_equal(rows.count, 3);
    assert_string_equal(state_cell(&rows, 0, 3),
                        ">>>>>>>>>>>>>>>>>>!>>>>>  1 missing, 9999 started");
    assert_string_equal(state_cell(&rows, 1, 0), "! 7777");
    assert_string_equal(state_cell(&rows, 1, 2), "-1");
    assert_string_equal(state_cell(&rows, 2, 0), "> 0-7776,7778-9999");
    rows_free(&rows);
    struct query sequence = {
        .view = VIEW_SEQUENCE, .number = NUMBER_LAST, .ascii = true, .width = 200};
    state_load(&source, &sequence, &rows);
    assert_int_equal(rows.count, 1);
    assert_int_equal(strlen(state_cell(&rows, 0, 1)), 64);
    assert_true(sequence.window * RANKS <= 1 << 18); /* what it may read at a time */
    rows_free(&rows);
    source_close_all(&source);
}

static void many_different_ranks_end_in_a_count(void **state)
{
    enum { RANKS = 200, GROUPS = 12 };
    const char *folder = *state;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, RANKS);
    struct source source;
    struct rows rows;
    for (int rank = 0; rank < RANKS; rank++)
        state_member(store, rank, rank, RANKS, 1000 - (uint64_t)rank, 1, 1);
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_NOW, .ascii = true}, &rows);
    assert_int_equal(rows.count, 1 + GROUPS + 1);
    assert_string_equal(state_cell(&rows, 1 + GROUPS, 0), "and 188 more");
    rows_free(&rows);
    source_close_all(&source);
}

/* A hang in the set-up: each rank's call names its own rank. Nobody has called a collective. */
static void calls_that_differ_in_arguments_are_one_row(void **state)
{
    enum { RANKS = 3 };
    const char *folder = *state;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, RANKS);
    struct source source;
    struct rows rows;
    char where[96];
    for (int rank = 0; rank < RANKS; rank++) {
        snprintf(where, sizeof where, "in ncclCommInitRank(nranks=4, rank=%d), waiting for rank %d",
                 rank, rank + 1);
        state_member_at(store, rank, rank, RANKS, 0, 0, 0, where);
    }
    state_end(store);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_NOW, .ascii = true, .width = 200}, &rows);
    assert_int_equal(rows.count, 1 + 1);
    assert_string_equal(state_cell(&rows, 1, 0), ". 0-2");
    const char *shown = state_cell(&rows, 1, 3);
    assert_non_null(strstr(shown, "in ncclCommInitRank"));
    assert_null(strchr(shown, '('));
    assert_null(strstr(shown, "waiting")); /* each for another rank */
    assert_non_null(strstr(state_cell(&rows, 0, 3), "3 without a collective"));
    rows_free(&rows);
    source_close_all(&source);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(members_stand_as_their_counts_say),
        ON_SCRATCH(nobody_is_later_than_the_first_by_less_than_nothing),
        ON_SCRATCH(a_member_that_two_hosts_know_is_that_of_its_own_host),
        ON_SCRATCH(ten_thousand_ranks_show_the_one_that_is_missing),
        ON_SCRATCH(many_different_ranks_end_in_a_count),
        ON_SCRATCH(calls_that_differ_in_arguments_are_one_row),
    };
    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
