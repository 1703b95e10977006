/* The work of the analysis grows as the communicators that a job makes, and its memory as those
 * that are in use at one time. Nothing is timed: the analyzer is compiled so that each basic block
 * that it executes is a step, and what it keeps is counted by the members that it shows. A walk
 * over all communicators for each of them shows as an exponent near 2. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyzer/analyzer.h"
#include "analyzer/model/gone.h"
#include "bench/comm_job.h"

enum { FEW_COMMS = 1024, MANY_COMMS = 4096 };
static const double most_growth = 1.1;

static uint64_t steps;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

struct comm_growth {
    struct analyzer *analyzer;
    int findings, reuses, members;
};

struct growth_cost {
    uint64_t steps;
    int members;   /* that are shown at the end */
    uint64_t held; /* communicators that are forgotten, and that something still refers to */
};

static void count_member(void *context, const struct member_state *member)
{
    struct comm_growth *growth = context;
    growth->members += member->comm != 0;
}

static void note_comm_finding(void *context, const struct finding *finding)
{
    struct comm_growth *growth = context;
    growth->findings += finding->severity <= SEVERITY_WARNING;
    growth->reuses += finding->code == DC109;
}

static void feed_comm_record(void *context, int rank, const struct record *record)
{
    struct comm_growth *growth = context;
    assert_return_code(analyzer_feed(growth->analyzer, rank, record), 0);
}

static void begin_job(struct comm_growth *growth, struct comm_job *job)
{
    const struct analyzer_options options = {.on_finding = note_comm_finding, .context = growth};
    growth->analyzer = analyzer_new(&options);
    assert_non_null(growth->analyzer);
    job->record = feed_comm_record;
    job->context = growth;
    for (int rank = 0; rank < COMM_JOB_RANKS; rank++) {
        const struct process_info info = comm_job_process(rank);
        assert_return_code(analyzer_add_process(growth->analyzer, rank, &info), 0);
    }
    comm_job_begin(job);
}

static struct growth_cost cost_of(int rounds, int keeps)
{
    struct comm_growth growth = {0};
    struct comm_job job = {.keeps = keeps};
    steps = 0;
    begin_job(&growth, &job);
    for (int round = 0; round < rounds; round++)
        comm_job_round(&job, round);
    comm_job_end(&job);
    assert_return_code(analyzer_finish(growth.analyzer), 0);
    struct growth_cost cost = {.steps = steps};
    analyzer_visit_members(growth.analyzer, count_member, &growth);
    cost.members = growth.members;
    cost.held = growth.analyzer->forgotten ? growth.analyzer->forgotten->shell_count : 0;
    analyzer_free(growth.analyzer);
    assert_int_equal(growth.findings, 0);
    return cost;
}

static struct growth_cost check_growth(const char *what, int keeps)
{
    struct growth_cost few = cost_of(FEW_COMMS, keeps), many = cost_of(MANY_COMMS, keeps);
    double growth = log((double)many.steps / (double)few.steps) /
                    log((double)MANY_COMMS / FEW_COMMS);
    print_message("%s: %.0f steps a communicator of %d, %.0f of %d: communicators^%.2f\n", what,
                  (double)few.steps / FEW_COMMS, FEW_COMMS, (double)many.steps / MANY_COMMS,
                  MANY_COMMS, growth);
    assert_true(few.steps > FEW_COMMS); /* steps are counted */
    assert_true(growth <= most_growth);
    return many;
}

/* What is shown is what is kept: the newest that were destroyed, and those in use. */
static void test_destroyed(void **state)
{
    (void)state;
    struct growth_cost cost = check_growth("destroyed", 0);
    assert_true(cost.members < FEW_COMMS);
    assert_true(cost.held < FEW_COMMS);
}

static void test_half_destroyed(void **state)
{
    (void)state;
    struct growth_cost cost = check_growth("each second one kept", 2);
    assert_true(cost.members >= MANY_COMMS);
}

static void test_kept(void **state)
{
    (void)state;
    check_growth("kept", 1);
}

/* The unique id of a communicator that was forgotten is used again. */
static void test_id_used_again(void **state)
{
    (void)state;
    struct comm_growth growth = {0};
    struct comm_job job = {0};
    begin_job(&growth, &job);
    for (int round = 0; round < FEW_COMMS; round++)
        comm_job_round(&job, round);
    assert_int_equal(growth.findings, 0);
    comm_job_round(&job, 1);
    assert_true(growth.reuses > 0);
    assert_int_equal(growth.findings, growth.reuses);
    analyzer_free(growth.analyzer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_destroyed),
        cmocka_unit_test(test_half_destroyed),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_id_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
