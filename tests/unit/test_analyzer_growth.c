/* The work of the analysis grows as the ranks of the job. It is counted, not timed: the analyzer is
 * compiled so that each basic block that it executes is a step (tests/unit/CMakeLists.txt). A scan
 * of all members for each member shows as an exponent near 2, on whatever machine. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analyzer/analyzer.h"
#include "bench/rank_job.h"

enum { FEW_RANKS = 1024, MANY_RANKS = 4096, SHOWN_AT = RANK_JOB_STEPS + 3 };
static const double most_growth = 1.1;

static uint64_t steps;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

struct growth_job {
    struct rank_job job;
    struct analyzer *analyzer;
    int findings, members;
};

static void count_shown(void *context, const struct member_state *member)
{
    struct growth_job *growth = context;
    growth->members += *member->where != 0;
}

static void note_growth_finding(void *context, const struct finding *finding)
{
    struct growth_job *growth = context;
    growth->findings += finding->severity == SEVERITY_ERROR;
}

static void feed_growth(void *context, int rank, const struct record *record)
{
    struct growth_job *growth = context;
    assert_return_code(analyzer_feed(growth->analyzer, rank, record), 0);
}

/* The steps of an analysis, with what it found. */
static uint64_t steps_of(const char *end, int ranks, int *findings)
{
    struct growth_job growth = {0};
    const struct analyzer_options options = {.on_finding = note_growth_finding, .context = &growth};
    const int prime = 1000003;
    bool more = true;
    assert_int_equal(rank_job_begin(&growth.job, end, ranks, true), 0);
    growth.job.record = feed_growth;
    growth.job.context = &growth;
    growth.analyzer = analyzer_new(&options);
    assert_non_null(growth.analyzer);
    steps = 0;
    for (int rank = 0; rank < ranks; rank++) {
        const struct process_info info = rank_job_process(&growth.job, rank);
        assert_return_code(analyzer_add_process(growth.analyzer, rank, &info), 0);
    }
    for (int moment = 0; more; moment++) {
        for (int i = 0; i < ranks; i++)
            more = rank_job_moment(&growth.job, (int)((int64_t)i * prime % ranks), moment);
        if (moment == SHOWN_AT) /* while they wait, as the states of a live job are stored */
            analyzer_visit_members(growth.analyzer, count_shown, &growth);
    }
    assert_return_code(analyzer_finish(growth.analyzer), 0);
    assert_int_equal(growth.members, RANK_JOB_GRID_COMMS * ranks);
    uint64_t counted = steps;
    analyzer_free(growth.analyzer);
    free(growth.job.rank);
    *findings = growth.findings;
    return counted;
}

static void check_growth(const char *end, bool is_faulty)
{
    int few_findings, many_findings;
    uint64_t few = steps_of(end, FEW_RANKS, &few_findings);
    uint64_t many = steps_of(end, MANY_RANKS, &many_findings);
    double growth = log((double)many / (double)few) / log((double)MANY_RANKS / FEW_RANKS);
    print_message("%s: %.0f steps a rank of %d, %.0f of %d: ranks^%.2f\n", end,
                  (double)few / FEW_RANKS, FEW_RANKS, (double)many / MANY_RANKS, MANY_RANKS,
                  growth);
    assert_int_equal(few_findings > 0, is_faulty);
    assert_int_equal(many_findings > 0, is_faulty);
    assert_true(few > FEW_RANKS); /* steps are counted */
    assert_true(growth <= most_growth);
}

static void test_clean(void **state)
{
    (void)state;
    check_growth("clean", false);
}

static void test_missing(void **state)
{
    (void)state;
    check_growth("missing", true);
}

static void test_half(void **state)
{
    (void)state;
    check_growth("half", true);
}

static void test_skipped(void **state)
{
    (void)state;
    check_growth("skipped", true);
}

static void test_mismatch(void **state)
{
    (void)state;
    check_growth("mismatch", true);
}

static void test_cycle(void **state)
{
    (void)state;
    check_growth("cycle", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),    cmocka_unit_test(test_missing),
        cmocka_unit_test(test_half),     cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_mismatch), cmocka_unit_test(test_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
