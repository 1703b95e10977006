/* report_by_host.c: replays each host's database by itself, lets a hub judge what is between them,
 * and puts the report together. */
#include "cmd/report/report_by_host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analyzer/check.h"
#include "cmd/report/report_merge.h"
#include "cmd/report/report_replay.h"
#include "cmd/report/report_stored.h"
#include "hub/stored_job.h"

const char by_host_unchecked[] = "DC204, DC210, DC308, DC501-DC507, DC601-DC610";
const char by_host_why[] =
    "between hosts: they compare all records of several hosts, of which each "
    "was analysed by itself; --reanalyse checks them";

enum { THREADS_MAX = 64 };
/* Some minutes of one processor: more is left to the hosts. */
static const uint64_t merged_most = 100000000;

/* A host that is replayed, and what its report says. */
struct host_part {
    struct report report;
    bool failed;
    struct error err;
};

struct by_host {
    struct report *report;
    const struct report_options *options;
    uint64_t hang_after_ns;
    struct stored_job *job;
    struct host_part *part;
    int parts;
    atomic_int next;
    struct replay_progress read;
};

static bool is_recorded(const struct trace *trace)
{
    for (int i = 0; i < trace_process_count(trace); i++)
        if (trace_process(trace, i)->lacks)
            return false;
    return true;
}

bool by_host_applies(const struct report *report, enum report_hosts hosts)
{
    struct trace *trace = report->trace;
    if (hosts == HOSTS_MERGED || trace_database_count(trace) < 2 || trace_is_job(trace) ||
        !is_recorded(trace))
        return false;
    return hosts == HOSTS_APART || trace_event_count(trace) > merged_most;
}

struct host_findings {
    struct report *report;
    struct join *join;
    bool failed;
};

/* The hub gets the host's own, as it does live. What it does not get, as what is over, stays with
 * the host's report. */
static void send_host_finding(void *context, const struct finding *finding)
{
    struct host_findings *sent = context;
    if (!join_owns_finding(sent->join, finding))
        return;
    sent->failed |= join_add_finding(sent->join, finding) < 0;
    if (join_sends_finding(sent->join, finding))
        return;
    struct finding *added = finding_list_add(&sent->report->united);
    sent->failed |= !added || finding_copy(added, finding) < 0;
}

static int send_host_findings(struct report *report, struct join *join, struct error *err)
{
    if (stored_findings_unite(report, err))
        return -1;
    struct finding_list all = report->united;
    struct host_findings sent = {.report = report, .join = join};
    report->united = (struct finding_list){0};
    for (int i = 0; i < all.count; i++)
        send_host_finding(&sent, &all.finding[i]);
    if (!report->is_united)
        analyzer_visit_findings(report->analyzer, send_host_finding, &sent);
    finding_list_free(&all);
    join_report_findings(join);
    return sent.failed ? report_fail_memory(err) : 0;
}

static int replay_host(struct by_host *by_host, int number, struct report *report,
                       struct error *err)
{
    const char *path = trace_database_path(by_host->report->trace, number);
    struct join *join = stored_job_host(by_host->job, number);
    uint64_t known_ns = 1;
    if (trace_open(&report->trace, &path, 1, err) ||
        replay_begin(report, by_host->hang_after_ns, err))
        return -1;
    for (int i = 0; i < trace_process_count(report->trace); i++)
        if (join_add_process(join, i, trace_process(report->trace, i)))
            return report_fail_memory(err);
    report->collecting = by_host->report->collecting;
    if (replay_host_events(report, join, &by_host->read, &known_ns, err))
        return -1;
    if (replay_end(report, !by_host->options->hang_after_ns) || replay_members(report, true))
        return report_fail_memory(err);
    join_report_all(join, report->analyzer, known_ns);
    report->skipped = analyzer_skipped(report->analyzer);
    return send_host_findings(report, join, err);
}

/* The next host that nobody has replayed; false: all have one. */
static bool replay_next(struct by_host *by_host)
{
    int number = atomic_fetch_add(&by_host->next, 1);
    if (number >= by_host->parts)
        return false;
    struct host_part *part = &by_host->part[number];
    part->failed = replay_host(by_host, number, &part->report, &part->err) < 0;
    report_close_trace(&part->report);
    return true;
}

static void *replay_hosts(void *context)
{
    while (replay_next(context))
        continue;
    return NULL;
}

/* The calling thread is one of them, so that it goes on where no other can be made. */
static void replay_all_hosts(struct by_host *by_host)
{
    pthread_t thread[THREADS_MAX];
    by_host->read.progress = progress_begin("reading", trace_event_count(by_host->report->trace));
    pthread_mutex_init(&by_host->read.lock, NULL);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = 0, wanted = processors < by_host->parts ? (int)processors : by_host->parts;
    while (threads + 1 < wanted && threads < THREADS_MAX &&
           !pthread_create(&thread[threads], NULL, replay_hosts, by_host))
        threads++;
    replay_hosts(by_host);
    while (threads)
        pthread_join(thread[--threads], NULL);
    progress_end(&by_host->read.progress);
    pthread_mutex_destroy(&by_host->read.lock);
}

static enum hub_ending ending_of(const struct by_host *by_host)
{
    const struct report *report = by_host->report;
    if (report->complete)
        return HUB_JOB_ENDS;
    return report->collecting || by_host->options->hang_after_ns ? HUB_JOB_GOES_ON
                                                                 : HUB_JOB_BROKE_OFF;
}

static void add_job_finding(void *context, const struct finding *finding)
{
    struct by_host *by_host = context;
    const struct check *check = check_of(finding->code);
    if (check && check->scope == SCOPE_CALLS && !finding->is_taken)
        return; /* its host has it */
    struct finding *added = finding_list_add(&by_host->report->united);
    if (!added || finding_copy(added, finding) < 0) {
        by_host->report->standings.failed = true;
        return;
    }
    for (int i = 0; i < added->sides; i++) {
        int host, process;
        bool known = stored_job_process(by_host->job, added->side[i].process, &host, &process);
        added->side[i].process = known ? trace_process_of(by_host->report->trace, host, process)
                                       : -1;
    }
}

static int put_together(struct by_host *by_host, struct error *err)
{
    struct report *report = by_host->report;
    report->complete = trace_complete(report->trace);
    for (int i = 0; i < by_host->parts; i++) {
        struct host_part *part = &by_host->part[i];
        if (part->failed) {
            *err = part->err;
            return -1;
        }
        if (part->report.damage.text[0] && !report->damage.text[0])
            report->damage = part->report.damage;
        if (report_merge(report, &part->report, i))
            return report_fail_memory(err);
    }
    report->complete &= !report->damage.text[0];
    if (report_merge_hosts(report))
        return report_fail_memory(err);
    if (stored_job_judge(by_host->job, by_host->hang_after_ns, ending_of(by_host), err) < 0)
        return -1;
    int hosts = report->united.count;
    stored_job_visit(by_host->job, add_job_finding, by_host);
    if (report_merge_end(report, hosts))
        return report_fail_memory(err);
    return report->standings.failed ? report_fail_memory(err) : 0;
}

int load_by_host(struct report *report, const struct report_options *options,
                 uint64_t hang_after_ns, struct error *err)
{
    struct by_host by_host = {.report = report,
                              .options = options,
                              .hang_after_ns = hang_after_ns,
                              .parts = trace_database_count(report->trace)};
    report->is_united = true;
    report->dropped = trace_dropped(report->trace);
    by_host.part = calloc((size_t)by_host.parts, sizeof *by_host.part);
    if (!by_host.part || replay_begin(report, hang_after_ns, err)) {
        free(by_host.part);
        return report_fail_memory(err);
    }
    int result =
        stored_job_open(&by_host.job, by_host.parts, trace_process_count(report->trace), err);
    if (result == 0) {
        replay_all_hosts(&by_host);
        result = put_together(&by_host, err);
    }
    for (int i = 0; i < by_host.parts; i++)
        report_free(&by_host.part[i].report);
    free(by_host.part);
    stored_job_close(by_host.job);
    return result;
}
