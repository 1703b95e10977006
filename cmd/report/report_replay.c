/* report_replay.c: feeds the events of a report's trace to its analyzer, and takes what the report
 * itself wants to know. */
#include "cmd/report/report_replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report_stored.h"
#include "collector/join.h"
#include "lib/base/array.h"
#include "lib/trace/lacks.h"
#include "lib/trace/member_load.h"
#include "lib/trace/names.h"
#include "lib/trace/site.h"

enum { EVENTS_TOGETHER = 16384 }; /* as progress_show wants them */

int report_fail_memory(struct error *err)
{
    return error_memory(err, "can't analyse the trace");
}

static void note_loss(struct report *report, int process, const struct record *record)
{
    report->lost[process] = record->lost.control + record->lost.bulk;
    if (!report->losses)
        report->losses = calloc((size_t)trace_process_count(report->trace), sizeof *report->losses);
    if (!report->losses) {
        report->standings.failed = true;
        return;
    }
    struct losses_notices *losses = &report->losses[process];
    if (!losses->first.api)
        losses->first = *record;
    losses->last = *record;
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
        note_loss(report, process, record);
}

int replay_events(struct report *report, struct error *err)
{
    struct progress progress = progress_begin("reading", trace_event_count(report->trace));
    struct record record;
    int process, more;
    while ((more = trace_next(report->trace, &process, &record, &report->damage)) > 0) {
        note_event(report, process, &record);
        if (report->analyzer && analyzer_feed(report->analyzer, process, &record))
            break;
        progress_show(&progress, ++report->events);
    }
    progress_end(&progress);
    standings_end(&report->standings);
    return more > 0 ? report_fail_memory(err) : 0;
}

/* Another thread that shows it just now shows as much. */
static void show_together(struct replay_progress *progress)
{
    uint64_t done = atomic_fetch_add(&progress->events, EVENTS_TOGETHER) + EVENTS_TOGETHER;
    if (pthread_mutex_trylock(&progress->lock))
        return;
    progress_show(&progress->progress, done);
    pthread_mutex_unlock(&progress->lock);
}

int replay_host_events(struct report *report, struct join *join, struct replay_progress *progress,
                       uint64_t *known_ns, struct error *err)
{
    struct record record;
    int process, more;
    while ((more = trace_next(report->trace, &process, &record, &report->damage)) > 0) {
        note_event(report, process, &record);
        if (record.time_ns > *known_ns)
            *known_ns = record.time_ns;
        if (analyzer_feed(report->analyzer, process, &record) ||
            join_feed(join, report->analyzer, process, &record))
            break;
        if (++report->events % EVENTS_TOGETHER == 0)
            show_together(progress);
    }
    standings_end(&report->standings);
    return more > 0 ? report_fail_memory(err) : 0;
}

int replay_begin(struct report *report, uint64_t hang_after_ns, struct error *err)
{
    int processes = trace_process_count(report->trace);
    const struct analyzer_options analysis = {.hang_after_ns = hang_after_ns,
                                              .only_job = trace_is_job(report->trace)};
    report->lost = calloc(processes + 1, sizeof *report->lost);
    if (!report->lost)
        return report_fail_memory(err);
    if (report->is_judged)
        return 0;
    if (!(report->analyzer = analyzer_new(&analysis)))
        return report_fail_memory(err);
    for (int i = 0; i < processes; i++)
        if (analyzer_add_process(report->analyzer, i, trace_process(report->trace, i)))
            return report_fail_memory(err);
    return trace_is_job(report->trace) ? stored_findings_take(report, err) : 0;
}

struct gather {
    struct report *report;
    bool seen_only, failed;
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
    if (gather->failed || (gather->seen_only && view->process < 0))
        return;
    if (!ARRAY_ADD(report->member, report->members)) {
        gather->failed = true;
        return;
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

int replay_members(struct report *report, bool seen_only)
{
    struct gather gather = {.report = report, .seen_only = seen_only};
    analyzer_visit_members(report->analyzer, gather_member, &gather);
    report->forgotten = analyzer_forgotten_comms(report->analyzer);
    return gather.failed || report->standings.failed ? -1 : 0;
}

int replay_stored_members(struct report *report, struct error *err)
{
    struct member_state *stored = NULL;
    struct gather gather = {.report = report};
    int count = 0;
    int result = member_states_load(report->trace, true, &stored, &count, err);
    for (int i = 0; i < count; i++) {
        gather_member(&gather, &stored[i]);
        member_state_free(&stored[i]);
    }
    free(stored);
    if (result < 0)
        return -1;
    return gather.failed ? report_fail_memory(err) : 0;
}

int replay_end(struct report *report, bool may_break_off)
{
    report->complete = trace_complete(report->trace) && !report->damage.text[0];
    /* Only a trace that has its end can show that something never happened. */
    if (report->complete)
        return analyzer_finish(report->analyzer);
    return may_break_off && !report->collecting ? analyzer_break_off(report->analyzer)
                                                : analyzer_catch_up(report->analyzer);
}
