/* report_model.c: replays the events of one or several traces and collects what a report shows. */
#include "cmd/report/report_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/hub/job_copies.h"
#include "cmd/progress.h"
#include "cmd/report/report_stored.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"
#include "lib/trace/site.h"

static int fail_report_memory(struct error *err)
{
    return error_set(err, "can't analyse the trace: memory is short");
}

/* What the report itself wants to know of an event; all else is the analyzer's. */
static void note_event(struct report *report, int process, const struct record *record)
{
    const struct process_info *info = trace_process(report->trace, process);
    uint64_t time_ns = info->realtime_ns - info->monotonic_ns + record->time_ns;
    if (record->time_ns && !(info->lacks & LACKS_TIMING && time_ns < LACKS_TIME_BEGINS)) {
        if (!report->begin_ns || time_ns < report->begin_ns)
            report->begin_ns = time_ns;
        if (time_ns > report->end_ns)
            report->end_ns = time_ns;
    }
    if (record->phase == RECORD_ENTER)
        standings_note_call(&report->standings, process, record);
    if (record->api == API_notice_thread_stack)
        standings_note(&report->standings, process, record, time_ns);
    if (record->api == API_notice_lost)
        report->lost[process] = record->lost.control + record->lost.bulk;
}

static int replay_report(struct report *report, struct error *err)
{
    struct progress progress = progress_begin("reading", trace_event_count(report->trace));
    struct record record;
    int process, more;
    while ((more = trace_next(report->trace, &process, &record, &report->damage)) > 0) {
        note_event(report, process, &record);
        if (analyzer_feed(report->analyzer, process, &record))
            break;
        progress_show(&progress, ++report->events);
    }
    progress_end(&progress);
    return more > 0 ? fail_report_memory(err) : 0;
}

static int start_analyzer(struct report *report, const struct report_options *options,
                          struct error *err)
{
    int processes = trace_process_count(report->trace);
    uint64_t hang_after_ns = options->hang_after_ns ? options->hang_after_ns
                                                    : trace_hang_after_ns(report->trace);
    const struct analyzer_options analysis = {.hang_after_ns = hang_after_ns,
                                              .only_job = trace_is_job(report->trace)};
    report->analyzer = analyzer_new(&analysis);
    report->lost = calloc(processes + 1, sizeof *report->lost);
    if (!report->analyzer || !report->lost)
        return fail_report_memory(err);
    for (int i = 0; i < processes; i++)
        if (analyzer_add_process(report->analyzer, i, trace_process(report->trace, i)))
            return fail_report_memory(err);
    return 0;
}

int report_comm_members(const struct report *report, int first)
{
    int last = first;
    while (last < report->members && report->member[last].comm == report->member[first].comm)
        last++;
    return last - first;
}

struct gather {
    struct report *report;
    int space;
    bool failed;
};

static char *member_site(struct report *report, const struct member_state *view)
{
    struct frame frame[SITE_FRAMES_MAX];
    char function[sizeof frame->function + 8], place[sizeof frame->file], *site;
    int count =
        site_frames(report->trace, view->process, view->stack, view->stack_is_address, frame);
    int shown = site_shown_frame(frame, count);
    if (shown < 0)
        return strdup("");
    frame_function(&frame[shown], function, sizeof function);
    frame_place(&frame[shown], 60, place, sizeof place);
    return asprintf(&site, "%s%s%s", function, *place ? " " : "", place) < 0 ? NULL : site;
}

static void gather_member(void *context, const struct member_state *view)
{
    struct gather *gather = context;
    struct report *report = gather->report;
    if (gather->failed)
        return;
    if (report->members == gather->space) {
        gather->space = gather->space ? gather->space * 2 : 64;
        struct member_state *more = reallocarray(report->member, gather->space, sizeof *more);
        if (!more) {
            gather->failed = true;
            return;
        }
        report->member = more;
    }
    struct member_state *member = &report->member[report->members];
    char *site = member_site(report, view);
    gather->failed = !site || member_state_copy(member, view) < 0;
    if (gather->failed) {
        free(site);
        return;
    }
    member->site = site;
    report->members++;
    report->unseen += view->process < 0;
}

static void count_report_finding(void *context, const struct finding *finding)
{
    struct report *report = context;
    if (choice_count(report->choice, finding, report->trace) != REPORTED)
        return;
    if (finding->state == FINDING_RESOLVED)
        report->resolved++;
    else
        report->count[finding->severity]++;
}

static void visit_all_findings(struct report *report,
                               void (*visit)(void *context, const struct finding *finding),
                               void *context)
{
    if (!report->dropped.records)
        analyzer_visit_findings(report->analyzer, visit, context);
    for (int i = 0; i < report->united.count; i++)
        visit(context, &report->united.finding[i]);
}

static int gather_report(struct report *report, struct error *err)
{
    for (int i = 0; i < trace_process_count(report->trace); i++)
        report->lost_total += report->lost[i];
    struct gather gather = {.report = report};
    analyzer_visit_members(report->analyzer, gather_member, &gather);
    for (int i = 0; i < report->members; i += report_comm_members(report, i))
        members_stand(&report->member[i], report_comm_members(report, i), report->end_ns);
    if (stored_findings_unite(report, err))
        return -1;
    visit_all_findings(report, count_report_finding, report);
    report->skipped = analyzer_skipped(report->analyzer);
    return gather.failed || report->standings.failed ? fail_report_memory(err) : 0;
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

static int load_report(struct report *report, const char *const *paths, int count,
                       const struct report_options *options, struct error *err)
{
    if (trace_open(&report->trace, paths, count, err))
        return -1;
    report->sources = sources_find(paths, count, &report->source, err);
    if (report->sources < 0 || start_analyzer(report, options, err) || replay_report(report, err))
        return -1;
    for (int i = 0; i < report->sources; i++)
        report->collecting |= report->source[i].collecting;
    if (options->copies && name_copies(report, options->copies) < 0)
        return fail_report_memory(err);
    report->complete = trace_complete(report->trace) && !report->damage.text[0];
    /* Only a trace that has its end can show that something never happened. */
    if (report->complete && analyzer_finish(report->analyzer))
        return fail_report_memory(err);
    /* Who says what silence is a hang is not second-guessed. */
    bool broke_off = !report->complete && !report->collecting && !options->hang_after_ns;
    if (broke_off && analyzer_break_off(report->analyzer))
        return fail_report_memory(err);
    return gather_report(report, err);
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
    united_findings_free(&report->united);
    standings_free(&report->standings);
    sources_free(report->source, report->sources);
    analyzer_free(report->analyzer);
    if (report->trace)
        trace_close(report->trace);
    *report = (struct report){0};
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
