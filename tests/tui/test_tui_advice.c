/* Findings, as rows; no terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/tui/state_files.h"
#include "tui/findings.h"

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

#define ON_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SCRATCH(findings_are_ordered_over_hosts),
        ON_SCRATCH(a_job_with_a_note_has_a_finding),
        ON_SCRATCH(finding_says_what_holds_in_the_version),
        ON_SCRATCH(finding_says_the_likely_cause),
    };
    setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
