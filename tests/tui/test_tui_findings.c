/* Findings of the database: shown by their fields; those of newer versions by their words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "lib/finding/finding_store.h"
#include "tests/tui/state_files.h"
#include "tui/findings.h"
#include "tui/view.h"

/* Every field that the words of an act can name. */
static struct act act_with_all_fields(enum did did)
{
    const struct called call = {.api = API_ncclBroadcast,
                                .arguments = ARGUMENT_COUNT | ARGUMENT_DATATYPE | ARGUMENT_ROOT,
                                .datatype = TYPE_FLOAT16,
                                .peer = 3,
                                .count = UINT64_C(1) << 63};
    return (struct act){
        .did = did,
        .call = call,
        .value = -9,
        .rank = 7,
        .number = UINT64_MAX,
        .wait = {.kind = AWAITED_INIT,
                 .comm = state_comm,
                 .number = 1,
                 .title = "comm control (4 ranks)"},
        .behind = {.kind = AWAITED_OPERATION,
                   .call = call,
                   .comm = UINT64_MAX,
                   .number = 12,
                   .title = "comm data of ranks 8-15"},
        .name = "conv",
        .phase = "backward",
    };
}

static void store_acts(const char *path, enum did did)
{
    struct store *store = state_begin(path, "a", 0, 1);
    struct finding finding = {.id = 1, .code = DC201, .what = "what", .todo = "todo", .sides = 2};
    for (int i = 0; i < 2; i++)
        finding.side[i] = (struct finding_side){
            .process = -1, .call = "stored call", .where = "stored where", .phase = ""};
    finding.side[0].act = act_with_all_fields(did);
    finding.side[1].now = act_with_all_fields(did);
    assert_int_equal(finding_store(store, &finding, NULL), 0);
    assert_int_equal(finding_store(store, &finding, NULL), 0); /* in place of itself */
    state_call(store, 0, 0, 0, 1, 1);
    state_end(store);
}

static void expect_words(const char *folder, const char *call, const char *where)
{
    struct source source;
    struct findings findings;
    state_open(&source, &folder);
    assert_int_equal(tui_findings_load(&findings, &source, NULL), 0);
    assert_int_equal(findings.faults.count, 1);
    assert_int_equal(findings.list.finding->sides, 2);
    assert_string_equal(findings.list.finding->side[0].call, call);
    assert_string_equal(findings.list.finding->side[0].where, "stored where");
    assert_string_equal(findings.list.finding->side[1].call, "stored call");
    assert_string_equal(findings.list.finding->side[1].where, where);
    tui_findings_free(&findings);
    source_close_all(&source);
}

static void a_stored_finding_is_shown_by_its_fields(void **state)
{
    const char *folder = *state;
    for (enum did did = DID_OTHER; did < DID_COUNT; did++) {
        const char *path = scratch_path(state, "a.db");
        const struct act act = act_with_all_fields(did);
        char *words = act_words(&act);
        struct source source;
        struct findings findings;
        store_acts(path, did);
        state_open(&source, &folder);
        assert_int_equal(tui_findings_load(&findings, &source, NULL), 0);
        assert_true(act_equal(&findings.list.finding->side[0].act, &act));
        assert_true(act_equal(&findings.list.finding->side[1].now, &act));
        tui_findings_free(&findings);
        source_close_all(&source);
        expect_words(folder, words, words);
        free(words);
        assert_int_equal(unlink(scratch_path(state, "a.db")), 0);
    }
}

static void a_title_is_in_no_fingerprint(void **state)
{
    (void)state;
    for (enum did did = DID_OTHER; did < DID_COUNT; did++) {
        struct act act = act_with_all_fields(did), untitled = act;
        *untitled.wait.title = *untitled.behind.title = '\0';
        assert_int_equal(act_hash(&act, false), act_hash(&untitled, false));
        assert_true(act_equal(&act, &untitled));
    }
}

static void change_database(const char *path, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void a_finding_without_fields_is_shown_by_its_words(void **state)
{
    const char *path = scratch_path(state, "a.db");
    store_acts(path, DID_EXITED);
    change_database(path, "UPDATE finding_act SET did = 'something of a newer version'");
    expect_words(*state, "stored call", "stored where");
}

/* Of one fault on several communicators the list has one finding, with the ranks of all. */
static void findings_of_one_fault_are_one_row(void **state)
{
    const char *path = scratch_path(state, "a.db"), *folder = *state;
    struct source source;
    struct findings findings;
    char ranks[64];
    store_acts(path, DID_EXITED);
    change_database(
        path,
        "UPDATE finding SET fingerprint = 7; UPDATE finding_side SET ranks = '0-7';"
        "INSERT INTO finding SELECT 2, code, severity, certainty, state, 99, number, first_ns,"
        " last_ns, 3, 7, what, todo FROM finding WHERE id = 1;"
        "INSERT INTO finding SELECT 3, code, severity, 'possible', state, 98, number, first_ns,"
        " last_ns, 1, 7, what, todo FROM finding WHERE id = 1;"
        "INSERT INTO finding_side SELECT 2, side, '8-15', process, call, phase, \"where\","
        " since_ns, stack, stack_is_address, where_stack, where_stack_is_address"
        " FROM finding_side WHERE finding = 1");
    state_open(&source, &folder);
    assert_int_equal(tui_findings_load(&findings, &source, NULL), 0);
    assert_int_equal(findings.faults.count, 2); /* the possible one says something else */
    assert_int_equal(findings.faults.fault[0].others, 1);
    assert_string_equal(finding_ranks(&findings.faults.fault[0], ranks, sizeof ranks), "0-15");
    tui_findings_free(&findings);
    source_close_all(&source);
}

/* As a report has it: where the exception was raised, and how long they wait while some do. */
static void the_headline_says_where_it_failed_and_how_long_others_wait(void **state)
{
    enum { WAITS = 0x1000, RAISES = 0x2000, SECONDS = 1000000000 };
    const char *folder = *state;
    for (int all_ended = 0; all_ended < 2; all_ended++) {
        struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 2);
        struct source source;
        struct rows rows = {0};
        struct finding finding = {
            .id = 1, .code = DC205, .what = "what", .todo = "todo", .sides = 2};
        for (int i = 0; i < 2; i++)
            finding.side[i] = (struct finding_side){.process = i,
                                                    .call = "",
                                                    .where = "",
                                                    .phase = "",
                                                    .stack = i ? RAISES : WAITS,
                                                    .stack_is_address = true};
        finding.side[0].since_ns = state_epoch_ns;
        finding.side[0].act.did = all_ended ? DID_KILLED : DID_CALLED;
        finding.side[1].act = (struct act){.did = DID_EXITED, .value = 1, .name = "ValueError"};
        assert_int_equal(finding_store(store, &finding, NULL), 0);
        store_symbol(store, 0, WAITS, "/bin/train", "reduce", "wait.c", 7, NULL);
        store_symbol(store, 1, RAISES, "/bin/train", "load", "load.c", 8, NULL);
        state_call(store, 0, 0, 0, 1, 12 * (uint64_t)SECONDS + 1000);
        state_end(store);
        state_open(&source, &folder);
        assert_int_equal(
            model_diagnosis(&source, &(struct query){.view = VIEW_NOW, .width = 80}, &rows, NULL),
            0);
        assert_string_equal(rows.line[0].text, all_ended ? "load.c:8: error DC205"
                                                         : "load.c:8: error DC205, for 12.0 s "
                                                           "until the end");
        rows_free(&rows);
        source_close_all(&source);
        assert_int_equal(unlink(scratch_path(state, "a.db")), 0);
    }
}

/* Ranks wait at one line for rank 1, and later for rank 3, which exited at lines of their own. */
static void two_exits_are_two_rows_as_in_a_report(void **state)
{
    enum { WAITS = 0x1000, FIRST_EXIT = 0x2000 };
    const char *folder = *state;
    struct store *store = state_begin(scratch_path(state, "a.db"), "a", 0, 4);
    struct source source;
    struct findings findings;
    for (uint32_t id = 1; id <= 2; id++) {
        struct finding finding = {.id = id,
                                  .code = DC205,
                                  .comm = state_comm,
                                  .fingerprint = id,
                                  .what = "what",
                                  .todo = "todo",
                                  .sides = 2};
        for (int i = 0; i < 2; i++)
            finding.side[i] = (struct finding_side){.process = i ? (int)(2 * id - 1) : 0,
                                                    .call = "",
                                                    .where = "",
                                                    .phase = "",
                                                    .stack = i ? id * FIRST_EXIT : WAITS,
                                                    .stack_is_address = true};
        finding.side[0].act.did = DID_CALLED;
        finding.side[1].act = (struct act){.did = DID_EXITED, .value = (int)id};
        assert_int_equal(rankset_add(&finding.side[0].ranks, 0), 0);
        assert_int_equal(rankset_add(&finding.side[1].ranks, (int)(2 * id - 1)), 0);
        assert_int_equal(finding_store(store, &finding, NULL), 0);
        rankset_free(&finding.side[0].ranks);
        rankset_free(&finding.side[1].ranks);
    }
    store_symbol(store, 0, WAITS, "/bin/train", "reduce", "wait.c", 7, NULL);
    store_symbol(store, 1, FIRST_EXIT, "/bin/train", "load", "load.c", 8, NULL);
    store_symbol(store, 3, 2 * FIRST_EXIT, "/bin/train", "save", "save.c", 9, NULL);
    state_call(store, 0, 0, 0, 1, 1);
    state_end(store);
    state_open(&source, &folder);
    assert_int_equal(tui_findings_load(&findings, &source, NULL), 0);
    assert_int_equal(findings.faults.count, 2);
    assert_string_equal(findings.faults.fault[0].key.location, "load.c:8");
    assert_string_equal(findings.faults.fault[1].key.location, "save.c:9");
    tui_findings_free(&findings);
    source_close_all(&source);
}

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(a_stored_finding_is_shown_by_its_fields),
        ON_SCRATCH(a_finding_without_fields_is_shown_by_its_words),
        cmocka_unit_test(a_title_is_in_no_fingerprint),
        ON_SCRATCH(findings_of_one_fault_are_one_row),
        ON_SCRATCH(two_exits_are_two_rows_as_in_a_report),
        ON_SCRATCH(the_headline_says_where_it_failed_and_how_long_others_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
