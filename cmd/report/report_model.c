/* report_model.c: replays the events of one or several traces and collects what a report shows;
 * joins findings of one fault. */
#include "cmd/report/report_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/command_traces.h"
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

/* People know a copy by the address of its hub, or by what was imported. */
static int name_copies(struct report *report, const struct command_traces *traces)
{
    for (int i = 0; i < report->sources; i++) {
        char *name = strdup(command_traces_name(traces, report->source[i].path));
        if (!name)
            return -1;
        free(report->source[i].path);
        report->source[i].path = name;
    }
    return 0;
}

/* What was imported was analysed to its end then, and does not change. */
static bool is_judged(const struct report *report, const struct report_options *options)
{
    char *judged = trace_database_meta(report->trace, 0, "judged");
    bool is_by_this = judged && !strcmp(judged, DDPCHECK_VERSION);
    free(judged);
    return is_by_this && report->sources == 1 && !options->is_anew && !options->hang_after_ns;
}

/* Takes findings and ranks from the database. */
static int load_judged(struct report *report, struct error *err)
{
    if (replay_begin(report, 0, err) || replay_events(report, err))
        return -1;
    report->complete = trace_complete(report->trace) && !report->damage.text[0];
    report->is_united = true;
    if (finding_list_load(&report->united, report->trace, 0, 0, err) < 0)
        return -1;
    finding_list_sort(&report->united);
    return replay_stored_members(report, err);
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
    if (options->traces && name_copies(report, options->traces) < 0)
        return report_fail_memory(err);
    uint64_t hang_after_ns = options->hang_after_ns ? options->hang_after_ns
                                                    : trace_hang_after_ns(report->trace);
    report->is_judged = is_judged(report, options);
    report->is_by_host = by_host_applies(report, options->hosts);
    if (report->is_judged && load_judged(report, err))
        return -1;
    if (!report->is_judged &&
        (report->is_by_host ? load_by_host : load_merged)(report, options, hang_after_ns, err))
        return -1;
    sum_up(report);
    return 0;
}

int report_load(struct report *report, const char *const *paths, int count,
                const struct report_options *options, struct error *err)
{
    *report = (struct report){.choice = options->choice};
    if (!load_report(report, paths, count, options, err)) {
        report->rank = member_process_ranks(report->member, report->members, report->trace);
        if (report->rank)
            return 0;
        error_memory(err, "can't find the ranks of the processes");
    }
    report_free(report);
    return -1;
}

void report_free(struct report *report)
{
    for (int i = 0; i < report->members; i++)
        member_state_free(&report->member[i]);
    free(report->member);
    free(report->rank);
    free(report->lost);
    free(report->losses);
    finding_list_free(&report->united);
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

bool report_is_part(const struct report *report)
{
    return report->sources == 1 && report->source[0].hub.address;
}

bool report_incomplete(const struct report *report)
{
    return !report->complete || report->unseen > 0 || report->events == 0 ||
           trace_unrecorded(report->trace) > 0;
}

enum { FAULT_RANKS_BYTES = 256 };

struct gathered_faults {
    struct fault_list *faults;
    struct report *report;
    bool merge;
};

static void gather_fault(void *context, const struct finding *finding)
{
    struct gathered_faults *gathered = context;
    if (!gathered->merge || !finding->is_consequence)
        fault_list_add(gathered->faults, gathered->report->trace, finding, gathered->merge);
}

void report_faults_find(struct fault_list *faults, struct report *report, enum finding_state state,
                        bool merge)
{
    struct gathered_faults gathered = {faults, report, merge};
    *faults = (struct fault_list){0};
    report_visit_findings(report, state, gather_fault, &gathered);
}

char *report_fault_others(const struct fault_group *fault, char *text, size_t bytes)
{
    char ranks[FAULT_RANKS_BYTES], odd[2 * FAULT_RANKS_BYTES];
    fault_odd_words(fault, odd, sizeof odd);
    rankset_words(&fault->ranks, ranks, sizeof ranks);
    *text = '\0';
    if (fault->others && fault->comms == fault->others)
        snprintf(text, bytes, "The same on %d more %s, of %s%s%s.", fault->comms,
                 plural((uint64_t)fault->comms, "communicator", "communicators"), ranks,
                 *odd ? ": " : "", odd);
    else if (fault->others)
        snprintf(text, bytes, "%d more %s at the same line, of %s%s%s; --verbose shows each.",
                 fault->others, plural((uint64_t)fault->others, "finding", "findings"), ranks,
                 *odd ? ": " : "", odd);
    return text;
}
