/* report_json.c: prints a report as lines of JSON. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/json_values.h"
#include "cmd/report/not_checked.h"
#include "cmd/report/report_by_host.h"
#include "analyzer/version_facts.h"
#include "cmd/report/report_cause.h"
#include "cmd/report/report_print.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_origin.h"
#include "lib/base/moment.h"
#include "lib/trace/names.h"
#include "lib/trace/site.h"
#include "lib/trace/site_operation.h"

struct json_writer {
    struct report *report;
    FILE *out;
    bool failed;
};

static json_t *fingerprint_json(uint64_t fingerprint)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, fingerprint);
    return json_string(text);
}

static json_t *time_json(uint64_t ns)
{
    char text[64];
    return moment_known(ns) ? json_string(moment_iso(ns, text, sizeof text)) : json_null();
}

/* One object a line. Takes the object over. */
static void print_report_json(struct json_writer *writer, json_t *object)
{
    writer->failed |= json_print_line(object, writer->out) != 0;
}

static json_t *frames_json(const struct json_writer *writer, int process, uint64_t stack,
                           bool is_address)
{
    struct frame frame[SITE_FRAMES_MAX];
    return json_of_frames(frame,
                          site_frames(writer->report->trace, process, stack, is_address, frame));
}

static json_t *process_json(const struct json_writer *writer, int process)
{
    if (process < 0)
        return json_null();
    const struct process_info *info = trace_process(writer->report->trace, process);
    return json_pack("{s:i, s:o, s:i, s:i}", "pid", info->pid, "host", json_of_text(info->host),
                     "rank", writer->report->rank[process], "restart", info->restart);
}

static json_t *finding_side_json(const struct json_writer *writer, const struct finding_side *side)
{
    bool is_address;
    char where[WHERE_BYTES], operation[SITE_OPERATION_BYTES];
    uint64_t where_stack = stack_of_where(writer->report, side, &is_address);
    site_operation_of(writer->report->trace, side->process, side->stack, side->stack_is_address,
                      side->call, operation, sizeof operation);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "ranks",
        json_of_ranks(&side->ranks), "operation",
        *operation ? json_of_text(operation) : json_null(), "act", json_of_act(&side->act), "now",
        json_of_act(&side->now), "call", json_of_text(side->call), "frames",
        frames_json(writer, side->process, side->stack, side->stack_is_address), "phase",
        json_of_text(side->phase), "since", time_json(side->since_ns), "where",
        json_of_text(where_of_side(writer->report, side, where, sizeof where)), "where_frames",
        frames_json(writer, side->process, where_stack, is_address), "process",
        process_json(writer, side->process));
}

static json_t *cause_json(const struct report *report, const struct finding *finding)
{
    const struct cause *cause = report_cause(report, finding);
    return cause ? json_pack("{s:s, s:s}", "what", cause->what, "check", cause->look) : json_null();
}

static json_t *origin_json(const struct report *report, const struct finding *finding)
{
    static const char *const kinds[] = {[ORIGIN_BRANCH] = "branch",
                                        [ORIGIN_FAILED] = "failure",
                                        [ORIGIN_LINES] = "lines",
                                        [ORIGIN_SHIFT] = "shift"};
    struct finding_origin origin = finding_origin(report->trace, finding);
    bool is_shift = origin.kind == ORIGIN_SHIFT;
    json_t *json = json_null();
    if (origin.kind != ORIGIN_NONE)
        json = json_pack("{s:s, s:o, s:o, s:o, s:s}", "kind", kinds[origin.kind], "number",
                         json_of_count(origin.number), "shift",
                         is_shift ? json_integer(origin.shift) : json_null(), "certainty",
                         is_shift ? json_string(certainty_name(origin.certainty)) : json_null(),
                         "what", origin.what);
    free(origin.what);
    return json;
}

static json_t *version_fact_json(const struct report *report, const struct finding *finding)
{
    char version[VERSION_RANGE_BYTES];
    int versions[LIBRARIES];
    const struct version_fact *fact = report_version_fact(report, finding, versions);
    if (!fact)
        return json_null();
    int number = versions[fact->library];
    snprintf(version, sizeof version, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    return json_pack("{s:s, s:s, s:s}", fact->library == LIBRARY_NCCL ? "nccl" : "pytorch", version,
                     "what", fact->words, "source", fact->source);
}

static void print_finding_json(void *context, const struct finding *finding)
{
    struct json_writer *writer = context;
    const struct check *check = check_of(finding->code);
    struct rankset all = {0};
    json_t *sides = json_array();
    for (int i = 0; i < finding->sides; i++) {
        const struct rankset *ranks = &finding->side[i].ranks;
        for (int rank = -1; (rank = rankset_next(ranks, rank + 1)) >= 0;)
            writer->failed |= rankset_add(&all, rank) != 0;
        json_array_append_new(sides, finding_side_json(writer, &finding->side[i]));
    }
    print_report_json(
        writer,
        json_pack(
            "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
            "s:o, s:o}",
            "schema", "ddpcheck.finding/1", "code", code_name(finding->code), "title",
            check ? check->title : "", "severity", severity_name(finding->severity), "certainty",
            certainty_name(finding->certainty), "state",
            finding->state == FINDING_RESOLVED ? "resolved" : "open", "comm",
            finding->comm ? json_of_address(finding->comm) : json_null(), "number",
            finding->has_number ? json_of_count(finding->number) : json_null(), "ranks",
            json_of_ranks(&all), "what", json_of_text(finding->what), "todo",
            json_of_text(finding_fix(writer->report->trace, finding)), "origin",
            origin_json(writer->report, finding), "cause", cause_json(writer->report, finding),
            "version_fact", version_fact_json(writer->report, finding), "first",
            time_json(finding->first_ns), "last", time_json(finding->last_ns), "times",
            json_of_count(finding->times), "fingerprint", fingerprint_json(finding->fingerprint),
            "sides", sides));
    rankset_free(&all);
}

static void print_member(struct json_writer *writer, const struct member_state *member)
{
    print_report_json(
        writer,
        json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, "
                  "s:o, s:o, s:o, s:o}",
                  "schema", "ddpcheck.member/1", "comm", json_of_address(member->comm), "rank",
                  member->shown_rank, "comm_rank", member->rank, "nranks", member->nranks, "device",
                  member->device, "issued", json_of_count(member->issued), "started",
                  json_of_count(member->started), "done", json_of_count(member->done), "p2p",
                  json_of_count(member->p2p), "destroyed", member->destroyed, "ended",
                  member->ended, "last_call", json_of_text(member->last_call), "where",
                  json_of_text(member->where), "since", time_json(member->since_ns), "site",
                  json_of_text(member->site), "phase", json_of_text(member->phase), "process",
                  process_json(writer, member->process)));
}

static void print_stacks(struct json_writer *writer)
{
    struct report *report = writer->report;
    struct stack_group *groups;
    char called[256];
    int count = stack_groups(report, &groups);
    for (int i = 0; i < count; i++) {
        const struct report_standing *standing = groups[i].first;
        const char *name = trace_string(report->trace, standing->process, standing->name);
        print_report_json(
            writer,
            json_pack("{s:s, s:o, s:b, s:i, s:b, s:o, s:o, s:b, s:o, s:o, s:o}", "schema",
                      "ddpcheck.stack/1", "ranks", json_of_ranks(&groups[i].ranks),
                      "all_ranks_known", groups[i].known_ranks, "threads", groups[i].threads,
                      "main", (standing->flags & RECORD_THREAD_MAIN) != 0, "name",
                      name ? json_of_text(name) : json_null(), "in",
                      json_of_text(standing_called(report, standing, called, sizeof called)),
                      "outer_unknown", (standing->flags & RECORD_THREAD_INNER) != 0, "frames",
                      frames_json(writer, standing->process, standing->stack, false), "at",
                      time_json(standing->time_ns), "process",
                      process_json(writer, standing->process)));
    }
    stack_groups_free(groups, count);
}

static void print_not_checked_json(struct json_writer *writer)
{
    struct not_checked *list;
    int count = not_checked_find(writer->report->trace, &list);
    for (int i = 0; i < count; i++)
        print_report_json(writer,
                          json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:i}", "schema",
                                    "ddpcheck.not-checked/1", "codes", list[i].lack->codes, "lacks",
                                    list[i].lack->name, "what", list[i].lack->what, "source",
                                    list[i].title, "ranks", json_of_ranks(&list[i].ranks),
                                    "processes", list[i].processes));
    not_checked_free(list, count > 0 ? count : 0);
    if (writer->report->is_by_host)
        print_report_json(writer, json_pack("{s:s, s:s, s:s}", "schema", "ddpcheck.not-checked/1",
                                            "codes", by_host_unchecked, "what", by_host_why));
}

static void print_dropped_json(struct json_writer *writer)
{
    const struct report *report = writer->report;
    if (report->dropped.records)
        print_report_json(writer, json_pack("{s:s, s:o, s:o, s:o}", "schema", "ddpcheck.dropped/1",
                                            "records", json_of_count(report->dropped.records),
                                            "calls", json_of_count(report->dropped.calls), "until",
                                            time_json(report->dropped.until_ns)));
}

/* NULL: the host had none. */
static json_t *hub_json(const struct hub_part *hub)
{
    json_t *findings = hub->address ? json_array() : NULL;
    for (int i = 0; findings && i < hub->count; i++) {
        const struct part_news *news = &hub->news[i];
        json_array_append_new(
            findings,
            json_pack("{s:o, s:s, s:o, s:o, s:o}", "code", json_of_text(news->code), "severity",
                      severity_name(news->severity), "certainty", json_of_text(news->certainty),
                      "location", json_of_text(news->location), "what", json_of_text(news->what)));
    }
    return findings ? json_pack("{s:o, s:o}", "address", json_of_text(hub->address), "findings",
                                findings)
                    : NULL;
}

static void add_clock_json(void *context, const struct trace_clock *clock)
{
    json_array_append_new(context, json_pack("{s:o, s:o, s:b}", "host", json_of_text(clock->host),
                                             "offset_ns", json_integer(clock->offset_ns), "by_hub",
                                             clock->is_by_hub));
}

/* NULL: all are right. */
static json_t *clocks_json(const struct report *report)
{
    json_t *clocks = json_array();
    trace_visit_clocks(report->trace, add_clock_json, clocks);
    if (json_array_size(clocks))
        return clocks;
    json_decref(clocks);
    return NULL;
}

static void print_head_json(struct json_writer *writer)
{
    const struct report *report = writer->report;
    json_t *sources = json_array();
    for (int i = 0; i < report->sources; i++) {
        const struct report_source *source = &report->source[i];
        json_array_append_new(
            sources,
            json_pack("{s:o, s:o, s:i, s:o, s:b, s:b, s:o*}", "path", json_of_text(source->path),
                      "hosts", json_of_text(source->hosts), "processes", source->processes,
                      "events", json_of_count(source->events), "complete", source->complete,
                      "collecting", source->collecting, "hub", hub_json(&source->hub)));
    }
    print_report_json(writer, json_pack("{s:s, s:s, s:s, s:o, s:o*}", "schema", "ddpcheck.report/1",
                                        "tool", "ddpcheck", "version", DDPCHECK_VERSION,
                                        "databases", sources, "clocks", clocks_json(report)));
}

/* Lines of the suppressions file that no finding matched. */
static json_t *unused_json(const struct suppressions *suppressions)
{
    json_t *lines = json_array();
    for (int i = 0; i < suppressions->count; i++)
        if (!suppressions->entry[i].used)
            json_array_append_new(lines,
                                  json_pack("{s:i, s:o}", "line", suppressions->entry[i].line,
                                            "text", json_of_text(suppressions->entry[i].text)));
    return lines;
}

static void print_summary_json(struct json_writer *writer)
{
    const struct report *report = writer->report;
    json_t *damage = *report->damage.text ? json_of_text(report->damage.text) : json_null();
    print_report_json(
        writer,
        json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:i, "
                  "s:i, s:b, s:b, s:o}",
                  "schema", "ddpcheck.summary/1", "errors", report->count[SEVERITY_ERROR],
                  "warnings", report->count[SEVERITY_WARNING], "notes",
                  report->count[SEVERITY_NOTE], "resolved", report->resolved, "processes",
                  trace_process_count(report->trace), "events", json_of_count(report->events),
                  "begin", time_json(report->begin_ns), "end", time_json(report->end_ns), "lost",
                  json_of_count(report->lost_total), "skipped", json_of_count(report->skipped),
                  "unseen", report->unseen, "suppressed", report->choice->suppressed, "unused",
                  unused_json(&report->choice->suppressions), "known", report->choice->known_again,
                  "gone", choice_gone(report->choice), "complete", !report_incomplete(report),
                  "collecting", report->collecting, "damage", damage));
}

static int finish_report_json(const struct json_writer *writer, struct error *err)
{
    if (writer->failed)
        return error_set(err, "can't write the report: %s",
                         errno ? strerror(errno) : OUT_OF_MEMORY);
    return 0;
}

int report_print_json_stacks(struct report *report, FILE *out, struct error *err)
{
    struct json_writer writer = {report, out, false};
    print_stacks(&writer);
    return finish_report_json(&writer, err);
}

struct speed_lines {
    FILE *out;
    bool failed;
};

static void print_speed_line(void *context, const struct speed_view *view)
{
    struct speed_lines *lines = context;
    json_t *compute = view->has_compute ? json_real(view->compute_s) : json_null();
    lines->failed |=
        json_print_line(json_pack("{s:s, s:i, s:o, s:o, s:f, s:f, s:o, s:f, s:f, s:f, s:f, s:f}",
                                  "schema", "ddpcheck.speed/1", "rank", view->shown_rank, "host",
                                  json_of_text(view->host), "iterations",
                                  json_of_count(view->iterations), "median", view->median_s, "p99",
                                  view->p99_s, "compute", compute, "waiting", view->wait_s,
                                  "transfer", view->transfer_s, "queued", view->queued_s, "idle",
                                  view->idle_s, "processor_wait", view->delay_s),
                        lines->out) != 0;
}

static void print_transfer_line(void *context, const struct speed_class_view *view)
{
    struct speed_lines *lines = context;
    json_t *bytes = view->bytes ? json_of_count(view->bytes) : json_null();
    lines->failed |=
        json_print_line(json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}",
                                  "schema", "ddpcheck.transfer/1", "operation", api_name(view->api),
                                  "nranks", json_of_count(view->nranks), "bytes", bytes, "comms",
                                  json_of_count(view->comms), "count", json_of_count(view->count),
                                  "mean", view->mean_s, "least", view->least_s, "most",
                                  view->most_s, "algorithm_bandwidth", view->algorithm,
                                  "bus_bandwidth", view->bus),
                        lines->out) != 0;
}

static void print_gain_line(void *context, const struct speed_gain_view *view)
{
    struct speed_lines *lines = context;
    lines->failed |=
        json_print_line(json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f}", "schema",
                                  "ddpcheck.gain/1", "kind", view->kind, "code", view->code,
                                  "ranks", view->ranks, "gain", view->gain_s, "left", view->left_s,
                                  "length", view->length_s),
                        lines->out) != 0;
}

static bool print_json_speed(struct report *report, FILE *out)
{
    struct speed_lines lines = {.out = out};
    analyzer_visit_speed_gains(report->analyzer, print_gain_line, &lines);
    int result = analyzer_visit_speed(report->analyzer, print_speed_line, &lines);
    if (!result)
        result = analyzer_visit_speed_classes(report->analyzer, print_transfer_line, &lines);
    return !result && !lines.failed;
}

int report_print_json(struct report *report, const struct report_parts *parts, FILE *out,
                      struct error *err)
{
    struct json_writer writer = {report, out, false};
    print_head_json(&writer);
    report_visit_findings(report, FINDING_OPEN, print_finding_json, &writer);
    report_visit_findings(report, FINDING_RESOLVED, print_finding_json, &writer);
    print_not_checked_json(&writer);
    print_dropped_json(&writer);
    writer.failed |= parts->speed && !print_json_speed(report, out);
    writer.failed |= parts->env && report_print_json_environment(report, out) != 0;
    print_stacks(&writer);
    for (int i = 0; i < report->members; i++)
        print_member(&writer, &report->member[i]);
    print_summary_json(&writer);
    return finish_report_json(&writer, err);
}
