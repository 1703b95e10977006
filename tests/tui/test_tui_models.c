/* The models: what a trace says, as rows; no terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "tests/tui/state_files.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/operations.h"

/* --- members --- */

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
    struct rows rows; /* a rank of which nothing was recorded is in the list of ranks, too */
    state_load(&source, &(struct query){.view = VIEW_RANKS, .number = NUMBER_LAST}, &rows);
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
    state_load(&source, &(struct query){.view = VIEW_RANKS, .number = NUMBER_LAST}, &rows);
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
    struct query sequence = {.view = VIEW_SEQUENCE, .number = NUMBER_LAST, .ascii = true};
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

/* --- findings --- */

static void findings_are_ordered_over_hosts(void **state)
{
    static const char *const order[] = {"DC201", "DC102", "DC210", "DC101"};
    const char *folder = *state;
    struct source source;
    struct rows rows;
    struct store *a = state_begin(scratch_path(state, "a.db"), "a", 0, 1),
                 *b = state_begin(scratch_path(state, "b.db"), "b", 1, 1);
    state_finding(a, 1, "DC101", "error", "resolved", 1);
    state_finding(a, 3, "DC102", "error", "open", 1);
    state_finding(b, 1, "DC210", "warning", "open", 1);
    state_finding(b, 2, "DC201", "error", "open", 1);
    state_end(a);
    state_end(b);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_FINDINGS, .ascii = true}, &rows);
    assert_int_equal(rows.count, 4);
    assert_string_equal(rows.line[0].text, "2 errors, 1 warning, 1 resolved");
    for (int i = 0; i < 4; i++)
        assert_string_equal(state_cell(&rows, i, 1), order[i]);
    struct rows finding;
    state_load(&source,
               &(struct query){.view = VIEW_FINDING, .finding = rows.row[2].target.finding},
               &finding);
    assert_non_null(strstr(finding.line[0].text, "DC210"));
    rows_free(&finding);
    rows_free(&rows);
    source_close_all(&source);
}

/* A trace of one process with one finding of one side. */
static void store_one_finding(void **state, const char *code, const char *severity,
                              struct store_act act)
{
    const struct store_side side = {
        .ranks = "0", .call = "what it did", .act = act, .phase = "", .where = "", .process = 0};
    const struct store_finding stored = {.id = 1,
                                         .code = code,
                                         .severity = severity,
                                         .certainty = "certain",
                                         .state = "open",
                                         .what = "what happened",
                                         .todo = "what to do",
                                         .times = 1,
                                         .first_ns = state_epoch_ns,
                                         .fingerprint = 1,
                                         .side = &side,
                                         .sides = 1};
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 1);
    assert_int_equal(store_finding(store, &stored, NULL), 0);
    state_end(store);
}

/* The view of the only finding has this text. */
static void finding_is_advised(void **state, const char *code, struct store_act act,
                               const char *advice)
{
    const char *folder = *state;
    struct source source;
    struct rows rows;
    store_one_finding(state, code, "error", act);
    state_open(&source, &folder);
    state_load(&source, &(struct query){.view = VIEW_FINDINGS, .ascii = true, .width = 200}, &rows);
    uint32_t id = (uint32_t)rows.row[0].target.finding;
    rows_free(&rows);
    state_load(&source, &(struct query){.view = VIEW_FINDING, .finding = id, .width = 200}, &rows);
    bool found = false;
    for (int i = 0; i < rows.lines; i++)
        found |= strstr(rows.line[i].text, advice) != NULL;
    assert_true(found);
    rows_free(&rows);
    source_close_all(&source);
}

static void a_job_with_a_note_has_a_finding(void **state)
{
    const char *folder = *state;
    struct source source;
    struct rows rows = {0};
    store_one_finding(state, "DC601", "note", (struct store_act){.did = did_key(DID_CALLED)});
    state_open(&source, &folder);
    assert_int_equal(
        model_diagnosis(&source, &(struct query){.view = VIEW_NOW, .width = 80}, &rows, NULL), 0);
    assert_int_equal(rows.lines, 2);
    assert_string_equal(rows.line[0].text,
                        "no error, 1 note (key 2); 1 process, 0 communicators, finished");
    assert_non_null(strstr(rows.line[1].text, "note DC601: "));
    rows_free(&rows);
    source_close_all(&source);
}

/* The processes have NCCL 2.28.9. */
static void finding_says_what_holds_in_the_version(void **state)
{
    finding_is_advised(state, "DC204", (struct store_act){.did = did_key(DID_CALLED)},
                       "With NCCL 2.28.9, which the job has: NCCL_LAUNCH_ORDER_IMPLICIT=1");
}

static void finding_says_the_likely_cause(void **state)
{
    finding_is_advised(state, "DC205", (struct store_act){.did = did_key(DID_KILLED), .value = 9},
                       "Likely: The kernel's out-of-memory killer");
}

/* --- waits, timeline, memory --- */

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
    assert_string_equal(state_cell(&rows, 0, 1), "    ----#####   ----");
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
    struct query query = {.view = VIEW_TIMELINE, .ascii = true, .width = 30};
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
    assert_string_equal(state_cell(&rows, 0, 1), "####################");
    assert_string_equal(state_cell(&rows, 1, 1), "!!!!!!!!!!!!!!!!!!!!");
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
        ON_SCRATCH(members_stand_as_their_counts_say),
        ON_SCRATCH(nobody_is_later_than_the_first_by_less_than_nothing),
        ON_SCRATCH(a_member_that_two_hosts_know_is_that_of_its_own_host),
        ON_SCRATCH(ten_thousand_ranks_show_the_one_that_is_missing),
        ON_SCRATCH(many_different_ranks_end_in_a_count),
        ON_SCRATCH(calls_that_differ_in_arguments_are_one_row),
        ON_SCRATCH(findings_are_ordered_over_hosts),
        ON_SCRATCH(a_job_with_a_note_has_a_finding),
        ON_SCRATCH(finding_says_what_holds_in_the_version),
        ON_SCRATCH(finding_says_the_likely_cause),
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
