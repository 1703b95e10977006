/* How many findings the analyzer keeps: of one check, and of what a job got over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/findings.h"

enum { MANY = 20000 };

struct heard {
    uint64_t findings; /* ids */
    char last[512];    /* that says that others are not listed */
    uint64_t last_id, reopened;
};

static void hear(void *context, const struct finding *finding)
{
    struct heard *heard = context;
    if (finding->id > heard->findings)
        heard->findings = finding->id;
    if (strstr(finding->what, "are not listed")) {
        snprintf(heard->last, sizeof heard->last, "%s", finding->what);
        heard->last_id = finding->id;
    }
    if (finding->times > 1 && finding->state == FINDING_OPEN)
        heard->reopened = finding->id;
}

/* Each of another number of elements: another fault. */
static uint32_t report(struct analyzer *analyzer, const struct check *check,
                       enum certainty certainty, uint64_t count, bool is_wait)
{
    struct draft draft = draft_new(check, certainty, NULL);
    char number[32];
    const struct values values = {.name = {"finding", number}};
    uint32_t id;
    snprintf(number, sizeof number, "%llu", (unsigned long long)count);
    const struct act act = {
        .did = DID_CALLED,
        .call = {.api = API_ncclAllReduce, .arguments = ARGUMENT_COUNT, .count = count}};
    draft.is_wait = is_wait;
    draft_side(&draft, &act, NULL);
    draft_headline(&draft, HEADLINE_TOOL_MESSAGE, ADVICE_NONE, &values);
    findings_report(analyzer, &draft, &id);
    return id;
}

/* Rounds that were late at ever new places: what is kept of them is bounded, and a round at one of
 * the newest places reopens its finding. */
static void resolved_findings_are_dropped(void **state)
{
    (void)state;
    struct heard heard = {0};
    const struct analyzer_options options = {.on_finding = hear, .context = &heard};
    struct analyzer *analyzer = analyzer_new(&options);
    uint32_t most = 0, id = 0;
    for (uint64_t round = 1; round <= MANY; round++) {
        id = report(analyzer, &check_late_rank, CERTAIN, round, true);
        assert_int_equal(id, round);
        findings_resolve(analyzer, id, "came within 1.0 s");
        most = analyzer->reported_count > most ? analyzer->reported_count : most;
    }
    assert_int_equal(most, 2 * FINDINGS_MAX);
    assert_int_equal(heard.findings, MANY);
    assert_null(findings_of(analyzer, 1));
    findings_count(analyzer, 1, 0); /* a check that still has its number */
    findings_resolve(analyzer, 1, "again");
    assert_int_equal(report(analyzer, &check_late_rank, CERTAIN, MANY - 1, true), MANY - 1);
    assert_int_equal(heard.reopened, MANY - 1);
    analyzer_free(analyzer);
}

/* Of warnings of one check 1,024 are listed, and the last says so; no error is left out. */
static void the_last_of_many_warnings_says_so(void **state)
{
    (void)state;
    struct heard heard = {0};
    const struct analyzer_options options = {.on_finding = hear, .context = &heard};
    struct analyzer *analyzer = analyzer_new(&options);
    for (uint64_t i = 1; i <= FINDINGS_MAX; i++)
        assert_int_equal(report(analyzer, &check_late_rank, CERTAIN, i, false), i);
    assert_string_equal(heard.last, "");
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(report(analyzer, &check_late_rank, CERTAIN, FINDINGS_MAX + i, false), 0);
    assert_int_equal(heard.last_id, FINDINGS_MAX);
    assert_string_equal(
        heard.last, "finding: 1024 (this is number 1024 of DC210; further ones are not listed)");
    assert_int_equal(report(analyzer, &check_missing_rank, CERTAIN, 1, false), FINDINGS_MAX + 1);
    analyzer_free(analyzer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolved_findings_are_dropped),
        cmocka_unit_test(the_last_of_many_warnings_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
