/* collector_job.c: the collector's part in a job on many hosts: what it sends the hub, and which
 * findings are the hub's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/check.h"
#include "collector/collector.h"
#include "collector/collector_notify.h"
#include "collector/join.h"
#include "collector/symbolizer.h"

static const uint64_t finish_patience_ns = 3000000000; /* the hub may be gone */

struct collector_job {
    struct join *join;
    struct item_news *news; /* the hub's findings, as they were reported last */
    int count;
    bool reports; /* rank 0 is here: the job's findings are reported, as this host's are */
    bool is_failure_reported, is_refusal_reported;
    bool is_alone; /* no hub judges the job */
};

static struct item_news *find_news(struct collector_job *job, uint32_t id)
{
    for (int i = 0; i < job->count; i++)
        if (job->news[i].id == id)
            return &job->news[i];
    struct item_news *grown = realloc(job->news, ((size_t)job->count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    job->news = grown;
    grown[job->count] = (struct item_news){.id = id, .state = FINDING_RESOLVED};
    return &grown[job->count++];
}

struct same_news {
    const struct item_news *news;
    const struct collector *collector;
    bool found;
};

static void compare_news(void *context, const struct finding *finding)
{
    struct same_news *same = context;
    same->found |= rankset_has(&same->collector->notified, (int)finding->id) &&
                   strcmp(finding->code, same->news->code) == 0 &&
                   strcmp(finding->what, same->news->text) == 0;
}

/* The host has reported the same itself, since all that takes part in it runs here, or it came
 * under another id: of ranks that wait at several places there can be a finding each. */
static bool is_reported_here(const struct collector *collector, const struct item_news *news)
{
    struct same_news same = {news, collector, false};
    const struct collector_job *job = collector->job;
    for (int i = 0; i < job->count; i++)
        same.found |= job->news[i].id < news->id && job->news[i].state == FINDING_OPEN &&
                      strcmp(job->news[i].code, news->code) == 0 &&
                      strcmp(job->news[i].text, news->text) == 0;
    analyzer_visit_findings(collector->analyzer, compare_news, &same);
    return same.found;
}

static void report_news(void *context, const struct item_news *news)
{
    struct collector *collector = context;
    struct item_news *known = find_news(collector->job, news->id);
    bool is_open = news->state == FINDING_OPEN;
    if (!known || news->severity > SEVERITY_NOTE || news->certainty > POSSIBLE)
        return;
    const struct item_news before = *known;
    *known = *news;
    bool changed = before.state != news->state || before.certainty != news->certainty;
    if (!changed || !collector->job->reports || is_reported_here(collector, news))
        return;
    notify(collector->options.notify_fd, "%s %d %s %s %s %s | %s",
           is_open ? "finding" : "withdrawn", JOB_NEWS_FIRST + (int)news->id,
           severity_name((enum severity)news->severity),
           certainty_name((enum certainty)news->certainty), news->code, news->location, news->text);
}

static struct trace *open_names(void *context)
{
    const struct collector *collector = context;
    return symbolizer_trace(collector->symbolizer);
}

int collector_job_open(struct collector *collector)
{
    const struct join_options options = {.transport = collector->options.transport,
                                         .on_news = report_news,
                                         .names = open_names,
                                         .context = collector};
    if (!options.transport)
        return 0;
    if (!(collector->job = calloc(1, sizeof *collector->job)))
        return -1;
    collector->job->join = join_new(&options);
    return collector->job->join ? 0 : -1;
}

void collector_job_close(struct collector *collector)
{
    if (!collector->job)
        return;
    join_free(collector->job->join);
    free(collector->job->news);
    free(collector->job);
    collector->job = NULL;
}

int collector_job_add_process(struct collector *collector, int process,
                              const struct process_info *info)
{
    if (!collector->job)
        return 0;
    collector->job->reports |= info->rank == 0;
    return join_add_process(collector->job->join, process, info);
}

int collector_job_feed(struct collector *collector, int process, const struct record *record)
{
    return collector->job ? join_feed(collector->job->join, process, record) : 0;
}

static bool has_open_news(const struct collector_job *job)
{
    for (int i = 0; i < job->count; i++)
        if (job->news[i].state == FINDING_OPEN && job->news[i].severity == SEVERITY_ERROR)
            return true;
    return false;
}

/* Once it is gone without a word of an error, each host says what it sees of one. */
static void look_for_hub(struct collector *collector)
{
    struct collector_job *job = collector->job;
    bool was_alone = job->is_alone;
    job->is_alone = !join_has_hub(job->join);
    if (job->is_alone && !was_alone && !has_open_news(job))
        collector_notify_left(collector);
}

void collector_job_pass(struct collector *collector, uint64_t now_ns, bool known)
{
    struct collector_job *job = collector->job;
    if (!job)
        return;
    join_pass(job->join, collector->analyzer, now_ns, known ? now_ns : 0);
    const char *failure = join_failure(job->join);
    if (*failure && !job->is_failure_reported)
        fprintf(stderr, "ddpcheck: %s This host is recorded without the job's hub.\n", failure);
    job->is_failure_reported |= *failure != 0;
    const char *refusal = join_refusal(job->join);
    if (*refusal && !job->is_refusal_reported)
        fprintf(stderr, "ddpcheck: a message of the job's hub is refused: %s\n", refusal);
    job->is_refusal_reported |= *refusal != 0;
    look_for_hub(collector);
}

void collector_job_count(struct collector *collector)
{
    struct collector_summary *summary = collector->summary;
    const struct collector_job *job = collector->job;
    for (int i = 0; job && job->reports && i < job->count; i++) {
        if (job->news[i].state != FINDING_OPEN || is_reported_here(collector, &job->news[i]))
            continue;
        summary->errors += job->news[i].severity == SEVERITY_ERROR;
        summary->warnings += job->news[i].severity == SEVERITY_WARNING;
    }
}

void collector_job_finish(struct collector *collector)
{
    if (!collector->job)
        return;
    join_finish(collector->job->join, collector->analyzer, collector->job->reports,
                finish_patience_ns);
    look_for_hub(collector);
}

bool collector_job_leaves(const struct collector *collector, const struct finding *finding)
{
    const struct check *check = check_find(finding->code);
    return collector->job && check && check->scope == SCOPE_JOB && finding->comm &&
           join_has_hub(collector->job->join) &&
           join_spans_hosts(collector->job->join, finding->comm);
}
