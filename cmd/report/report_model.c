/* report_model.c: replays the events of one or several traces and collects what a report shows. */
#include "cmd/report/report_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hub/job_copies.h"
#include "cmd/report/report_by_host.h"
#include "cmd/report/report_replay.h"
#include "cmd/report/report_stored.h"

int report_comm_members(const struct report *report, int first)
{
    int last = first;
    while (last < report->members && report->member[last].comm == report->member[first].comm)
        last++;
    return last - first;
}

static void count_report_finding(void *context, const struct finding *finding)
{
    struct report *report = context;
    if (choice_count(report->choice, finding, report->trace) != REPORTED)
        return;
    report->consequences += finding->is_consequence;
    if (finding->state == FINDING_RESOLVED)
        report->resolved++;
    else
        report->count[finding->severity]++;
}

static void visit_all_findings(struct report *report,
                               void (*visit)(void *context, const struct finding *finding),
                               void *context)
{
    if (!report->is_united)
        analyzer_visit_findings(report->analyzer, visit, context);
    for (int i = 0; i < report->united.count; i++)
        visit(context, &report->united.finding[i]);
}

/* Of members and findings that are there. */
static void sum_up(struct report *report)
{
    for (int i = 0; i < trace_process_count(report->trace); i++)
        report->lost_total += report->lost[i];
    for (int i = 0; i < report->members; i += report_comm_members(report, i))
        members_stand(&report->member[i], report_comm_members(report, i), report->end_ns);
    visit_all_findings(report, count_report_finding, report);
}

/* People know a copy by the address of its hub. */
static int name_copies(struct report *report, const struct job_copies *copies)
{
    for (int i = 0; i < report->sources; i++) {
        char *name = strdup(job_copies_name(copies, report->source[i].path));
        if (!name)
            return -1;
        free(report->source[i].path);
        report->source[i].path = name;
    }
    return 0;
}

/* All databases as one stream of events. */
static int load_merged(struct report *report, const struct report_options *options,
                       uint64_t hang_after_ns, struct error *err)
{
    if (replay_begin(report, hang_after_ns, err) || replay_events(report, err))
        return -1;
    /* Who says what silence is a hang is not second-guessed. */
    if (replay_end(report, !options->hang_after_ns) || replay_members(report, false))
        return report_fail_memory(err);
    report->skipped = analyzer_skipped(report->analyzer);
    return stored_findings_unite(report, err);
}

static int load_report(struct report *report, const char *const *paths, int count,
                       const struct report_options *options, struct error *err)
{
    if (trace_open(&report->trace, paths, count, err))
        return -1;
    report->sources = sources_describe(report->trace, &report->source, err);
    if (report->sources < 0)
        return -1;
    for (int i = 0; i < report->sources; i++)
        report->collecting |= report->source[i].collecting;
    if (options->copies && name_copies(report, options->copies) < 0)
        return report_fail_memory(err);
    uint64_t hang_after_ns = options->hang_after_ns ? options->hang_after_ns
                                                    : trace_hang_after_ns(report->trace);
    report->is_by_host = by_host_applies(report, options->hosts);
    if ((report->is_by_host ? load_by_host : load_merged)(report, options, hang_after_ns, err))
        return -1;
    sum_up(report);
    return 0;
}

int report_load(struct report *report, const char *const *paths, int count,
                const struct report_options *options, struct error *err)
{
    *report = (struct report){.choice = options->choice};
    if (!load_report(report, paths, count, options, err))
        return 0;
    report_free(report);
    return -1;
}

void report_free(struct report *report)
{
    for (int i = 0; i < report->members; i++)
        member_state_free(&report->member[i]);
    free(report->member);
    free(report->lost);
    free(report->losses);
    united_findings_free(&report->united);
    standings_free(&report->standings);
    sources_free(report->source, report->sources);
    report_close_trace(report);
    *report = (struct report){0};
}

void report_close_trace(struct report *report)
{
    analyzer_free(report->analyzer);
    trace_close(report->trace);
    report->analyzer = NULL;
    report->trace = NULL;
}

struct chosen {
    const struct report *report;
    enum finding_state state;
    void (*visit)(void *context, const struct finding *finding);
    void *context;
};

static void visit_chosen(void *context, const struct finding *finding)
{
    const struct chosen *chosen = context;
    if (finding->state == chosen->state &&
        choice_judge(chosen->report->choice, finding, chosen->report->trace) == REPORTED)
        chosen->visit(chosen->context, finding);
}

void report_visit_findings(struct report *report, enum finding_state state,
                           void (*visit)(void *context, const struct finding *finding),
                           void *context)
{
    struct chosen chosen = {report, state, visit, context};
    visit_all_findings(report, visit_chosen, &chosen);
}

bool report_incomplete(const struct report *report)
{
    return !report->complete || report->unseen > 0 || report->events == 0 ||
           trace_unrecorded(report->trace) > 0;
}
