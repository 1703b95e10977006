/* ddpcheck report: replays traces and says what was found and where every rank is. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd/commands.h"
#include "cmd/command_traces.h"
#include "cmd/options/options.h"
#include "cmd/report/report_print.h"
#include "lib/base/terminal.h"

static char usual_trace[] = "ddpcheck-trace"; /* where `ddpcheck run` puts it without -o */

struct report_request {
    struct report_parts parts;
    bool json, allow_missing, reanalyse, by_host;
    struct choice_options choice;
    bool gen_suppressions;
    int fail_on; /* enum severity */
    int color;   /* enum color_when */
    double hang_after_s;
};

static void print_suppression(void *context, const struct finding *finding)
{
    struct report *report = context;
    suppression_print(finding, report->trace, stdout);
}

static int print_report(struct report *report, const struct report_request *request,
                        struct error *err)
{
    if (request->gen_suppressions) {
        report_visit_findings(report, FINDING_OPEN, print_suppression, report);
        return 0;
    }
    if (request->json)
        return report_print_json(report, &request->parts, stdout, err);
    struct page page;
    page_init(&page, stdout, (enum color_when)request->color);
    report_print_text(report, &page, &request->parts);
    return 0;
}

/* What the hub had reported to the hosts counts as well. */
static int count_of_hubs(const struct report *report, enum severity severity)
{
    int count = 0;
    for (int i = 0; i < report->sources; i++)
        count += hub_part_count(&report->source[i].hub, severity);
    return count;
}

static int exit_status(const struct report *report, const struct report_request *request)
{
    for (int severity = SEVERITY_ERROR; severity <= request->fail_on; severity++)
        if (report->count[severity] || count_of_hubs(report, (enum severity)severity))
            return STATUS_FINDINGS;
    return report_incomplete(report) && !request->allow_missing ? STATUS_INCOMPLETE : STATUS_CLEAN;
}

static enum report_hosts hosts_of(const struct report_request *request)
{
    if (request->reanalyse || request->parts.speed) /* ranks of all hosts are compared */
        return HOSTS_MERGED;
    return request->by_host ? HOSTS_APART : HOSTS_BY_SIZE;
}

static int report_copies(char **paths, int count, const struct report_request *request,
                         const struct command_traces *traces)
{
    struct report report;
    struct choice choice;
    struct error err = {{0}};
    if (choice_load(&choice, &request->choice, &err))
        return command_fail(&err);
    const struct report_options options = {.hang_after_ns = (uint64_t)(request->hang_after_s * 1e9),
                                           .hosts = hosts_of(request),
                                           .is_anew = request->reanalyse || request->parts.speed,
                                           .choice = &choice,
                                           .traces = traces};
    if (report_load(&report, (const char *const *)paths, count, &options, &err)) {
        choice_free(&choice);
        return command_fail(&err);
    }
    int status = print_report(&report, request, &err) ? command_fail(&err)
                                                      : exit_status(&report, request);
    if (report.damage.text[0])
        status = command_fail(&report.damage);
    report_free(&report);
    choice_free(&choice);
    return status;
}

static int report_paths(char **paths, int count, const struct report_request *request)
{
    struct command_traces traces;
    struct error err;
    if (command_traces_open(&traces, paths, &count, &err) < 0)
        return command_fail(&err);
    int status = report_copies(paths, count, request, &traces);
    command_traces_close(&traces);
    return status;
}

int command_report(int argc, char **argv)
{
    struct report_request request = {.fail_on = SEVERITY_WARNING};
    const struct option_entry entries[] = {
        {"json", 0, OPTION_FLAG, NULL, "print JSON lines (docs/json.md)", &request.json},
        CHOICE_ENTRIES(request.choice, true),
        {"gen-suppressions", 0, OPTION_FLAG, NULL,
         "print lines for a suppressions file, not the report", &request.gen_suppressions},
        {"fail-on", 0, OPTION_CHOICE, "error|warning|note",
         "least severity that makes the exit status 1 (default: warning)", &request.fail_on},
        {"all-ranks", 0, OPTION_FLAG, NULL, "a line for every rank, not for every state",
         &request.parts.all_ranks},
        {"speed", 0, OPTION_FLAG, NULL, "print after the findings where the iterations' time went",
         &request.parts.speed},
        {"env", 0, OPTION_FLAG, NULL,
         "print the variables, versions and hardware that the ranks had, and what differs",
         &request.parts.env},
        {"verbose", 'v', OPTION_FLAG, NULL, "whole stacks, times and processes of each finding",
         &request.parts.verbose},
        {"hang-after", 0, OPTION_SECONDS, "S",
         "seconds without progress that are a hang (default: as when recorded)",
         &request.hang_after_s},
        {"by-host", 0, OPTION_FLAG, NULL,
         "analyse each host by itself, and ask the hosts as a hub does (docs/jobs.md)",
         &request.by_host},
        {"reanalyse", 0, OPTION_FLAG, NULL,
         "analyse all records of all hosts together, however many there are, and imports again",
         &request.reanalyse},
        {"allow-missing", 0, OPTION_FLAG, NULL, "accept a trace without its end or some ranks",
         &request.allow_missing},
        OPTION_COLOR(&request.color),
    };
    const struct command_options options = {
        .command = "report",
        .arguments = "[DIR|DATABASE|LOG...]",
        .summary =
            "Shows the findings of traces, in plain words, and the state of every rank. "
            "Traces of several hosts\n"
            "are analysed together. DIR defaults to ddpcheck-trace. LOG is a log, a dump, or "
            "anything else that\n'ddpcheck import' reads: it is imported for this report.",
        .entries = entries,
        .count = OPTION_COUNT(entries),
        .details =
            "Exit status: 0 no finding; 1 findings; 2 usage error or a trace that can't be read;\n"
            "3 no finding, but the trace is missing its end or some ranks.\n",
    };
    int status = options_parse(&options, &argc, &argv);
    if (status != OPTIONS_GO)
        return status;
    if (request.json && request.gen_suppressions)
        return options_usage_error(&options, "--json and --gen-suppressions exclude each other");
    if (request.parts.speed && request.gen_suppressions)
        return options_usage_error(&options, "--speed and --gen-suppressions exclude each other");
    if (request.by_host && request.reanalyse)
        return options_usage_error(&options, "--by-host and --reanalyse exclude each other");
    if (request.by_host && request.parts.speed)
        return options_usage_error(&options, "--speed compares all records of all hosts, which "
                                             "--by-host does not; leave one of them out");
    struct stat file;
    if (argc == 0 && stat(usual_trace, &file)) {
        fprintf(
            stderr,
            "ddpcheck: there is no trace at %s; name its directory, or record one: ddpcheck run "
            "-- PROGRAM\n",
            usual_trace);
        return STATUS_USAGE;
    }
    char *usual[] = {usual_trace};
    return argc ? report_paths(argv, argc, &request) : report_paths(usual, 1, &request);
}
