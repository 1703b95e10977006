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
#include "lib/base/array.h"
#include "lib/finding/finding_said.h"
#include "lib/base/text.h"
#include "lib/finding/finding_store.h"

static const uint64_t finish_patience_ns = REPORTER_LISTENS_NS; /* the hub may be gone */
static const uint64_t news_skew_ns = 2000000000;                /* of the hosts' clocks */

enum {
    NEWS_MAX = 8192, /* of two jobs whose hubs have the most that an analyzer keeps */
    NEWS_IDS_MAX = 2 * FINDING_TAKEN_FIRST
};

/* A finding of the hub, as it is now and as it was reported last. */
struct heard_news {
    struct item_news now, reported;
};

/* Of all sessions of the collector: the hub's server sends each once, perhaps while what a dead
 * collector left is finished, or before it is known which ranks are here. */
struct collector_news {
    struct heard_news *heard;
    int count;
    struct item_reporter reporter; /* the last; zeroed: none has come */
    struct item_full full;         /* the last; zeroed: none has come */
    bool is_unstored;              /* the database does not have it as it is */
    int64_t clock_ns;              /* the hub's clock less that of this host */
};

struct collector_job {
    struct join *join;
    uint64_t
        since_ns; /* when its first process here began; what was found before is another job's */
    bool is_failure_reported, is_refusal_reported, is_unkept_reported;
    bool is_alone; /* no hub judges the job, or not all of it */
};

/* NULL when memory is short. */
static struct collector_news *keep_news(struct collector *collector)
{
    if (!collector->news)
        collector->news = calloc(1, sizeof *collector->news);
    return collector->news;
}

/* NULL when they are too many, or memory is short. */
static struct heard_news *find_news(struct collector *collector, uint32_t id)
{
    struct collector_news *news = keep_news(collector);
    if (!news)
        return NULL;
    for (int i = 0; i < news->count; i++)
        if (news->heard[i].now.id == id)
            return &news->heard[i];
    if (news->count == NEWS_MAX)
        return NULL;
    if (!ARRAY_ADD(news->heard, news->count))
        return NULL;
    struct heard_news *heard = &news->heard[news->count++];
    *heard = (struct heard_news){.now = {.id = id, .state = FINDING_RESOLVED}};
    heard->reported = heard->now;
    return heard;
}

/* Before the first process began nothing is. */
static bool is_since_begin(const struct collector *collector, uint64_t realtime_ns)
{
    uint64_t since_ns = collector->job->since_ns;
    if (collector->news)
        since_ns += (uint64_t)collector->news->clock_ns;
    return collector->job->since_ns && realtime_ns + news_skew_ns >= since_ns;
}

/* It is of this job, not of an earlier one on the same server. */
static bool is_of_job(const struct collector *collector, const struct item_news *news)
{
    return is_since_begin(collector, news->realtime_ns);
}

static bool is_open_news(const struct collector *collector, const struct item_news *news)
{
    return news->state == FINDING_OPEN && is_of_job(collector, news);
}

/* An error about ranks of this host; the hub asks where they are. */
static bool asks_here(const struct collector *collector, const struct item_news *news)
{
    const char *ranks = news->asked;
    bool is_asked = false;
    for (int first, last; *ranks && !is_asked && !rankset_take_range(&ranks, &first, &last);)
        is_asked = join_has_rank_of(collector->job->join, first, last);
    return is_asked && is_open_news(collector, news) && news->severity == SEVERITY_ERROR;
}

/* Whether this host reports the job's findings, as its own; *since_ns: those since then. */
static bool is_reporter(const struct collector *collector, uint64_t *since_ns)
{
    struct item_reporter reporter = {.rank = 0};
    if (collector->news && is_since_begin(collector, collector->news->reporter.realtime_ns))
        reporter = collector->news->reporter;
    if (since_ns)
        *since_ns = reporter.since_ns;
    return join_has_rank(collector->job->join, reporter.rank);
}

static int count_news(const struct collector *collector)
{
    return collector->news ? collector->news->count : 0;
}

/* The host and the hub mean the same. */
static bool is_news_of(const struct item_news *news, const struct finding *finding)
{
    return strcmp(code_name(finding->code), news->code) == 0 &&
           finding->fingerprint == news->fingerprint && finding->comm == news->comm;
}

static bool names_rank_of(const struct item_news *news, const struct finding *finding)
{
    const char *ranks = news->asked;
    for (int first, last; *ranks && !rankset_take_range(&ranks, &first, &last);)
        for (int i = 0; i < finding->sides; i++) {
            int rank = rankset_next(&finding->side[i].ranks, first);
            if (rank >= 0 && rank <= last)
                return true;
        }
    return false;
}

/* Its hub has reported that, or what it follows from, as an error of the job. */
static bool is_reported_by_hub(const struct collector *collector, const struct finding *finding)
{
    bool is_of_many = finding->merges_ranks || finding->merges_sides;
    for (int i = 0; i < count_news(collector); i++) {
        const struct item_news *news = &collector->news->heard[i].now;
        const struct check *check = check_find(news->code), *own = check_of(finding->code);
        if (!is_open_news(collector, news) || !check || !own)
            continue;
        bool explains = news->severity == SEVERITY_ERROR && finding->comm &&
                        finding->comm == news->comm &&
                        (check == own || check_explains(check, own->code, true));
        if (explains || (is_news_of(news, finding) && (is_of_many || names_rank_of(news, finding))))
            return true;
    }
    return false;
}

/* It has dropped findings that hosts had sent it. */
static bool is_hub_full(const struct collector *collector)
{
    return collector->news && is_since_begin(collector, collector->news->full.realtime_ns);
}

struct same_news {
    const struct item_news *news;
    const struct collector *collector;
    bool found;
};

/* The hub and the host may know different origins, which come first (finding_sentence). */
static bool news_ends_with(const char *text, const char *end)
{
    size_t bytes = strlen(text), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

static void compare_news(void *context, const struct finding *finding)
{
    struct same_news *same = context;
    if (!rankset_has(&same->collector->notified.all, (int)finding->id) ||
        !is_news_of(same->news, finding))
        return;
    char *said = finding_said(symbolizer_trace(same->collector->symbolizer), finding);
    same->found |= news_ends_with(same->news->text, finding->what) ||
                   (said && news_ends_with(same->news->text, said));
    free(said);
}

/* The host has reported the same itself, since all that takes part in it runs here, or it came
 * under another id: of ranks that wait at several places there can be a finding each. */
static bool is_reported_here(const struct collector *collector, const struct item_news *news)
{
    struct same_news same = {news, collector, false};
    for (int i = 0; i < count_news(collector); i++) {
        const struct item_news *other = &collector->news->heard[i].now;
        same.found |= other->id < news->id && other->state == FINDING_OPEN &&
                      is_of_job(collector, other) && strcmp(other->code, news->code) == 0 &&
                      strcmp(other->text, news->text) == 0;
    }
    analyzer_visit_findings(collector->analyzer, compare_news, &same);
    return same.found;
}

/* What run prints below the line, which comes next. */
static void report_details(const struct collector *collector, const struct item_news *news)
{
    for (const char *line = news->details; *line && news->state == FINDING_OPEN;) {
        int bytes = (int)strcspn(line, "\n");
        notify(collector->options.notify_fd, "more %.*s", bytes, line);
        line += bytes + (line[bytes] == '\n');
    }
}

static bool is_shown_own(void *context, const struct finding *finding)
{
    const struct collector *collector = context;
    const struct collector_options *options = &collector->options;
    return !options->is_shown ||
           options->is_shown(options->context, finding, symbolizer_trace(collector->symbolizer));
}

/* As far as it can be seen without what its ranks did. */
static bool is_shown_news(const struct collector *collector, const struct item_news *news)
{
    const struct check *check = check_find(news->code);
    const struct finding finding = {.code = check ? check->code : CODE_NONE,
                                    .severity = (enum severity)news->severity,
                                    .certainty = (enum certainty)news->certainty,
                                    .comm = news->comm,
                                    .fingerprint = news->fingerprint,
                                    .what = (char *)news->text,
                                    .todo = (char *)""};
    return is_shown_own((void *)collector, &finding);
}

static void report_news(const struct collector *collector, struct heard_news *heard)
{
    const struct item_news *news = &heard->now;
    bool is_changed = heard->reported.state != news->state ||
                      heard->reported.certainty != news->certainty;
    uint64_t since_ns;
    if (!is_changed || !is_reporter(collector, &since_ns) || news->realtime_ns < since_ns ||
        !is_of_job(collector, news) || is_reported_here(collector, news) ||
        !is_shown_news(collector, news))
        return;
    heard->reported = *news;
    report_details(collector, news);
    notify(collector->options.notify_fd, "%s %d %s %s %s %s | %s",
           news->state == FINDING_OPEN ? "finding" : "withdrawn", JOB_NEWS_FIRST + (int)news->id,
           severity_name((enum severity)news->severity),
           certainty_name((enum certainty)news->certainty), news->code, news->location, news->text);
}

static void report_all_news(struct collector *collector)
{
    for (int i = 0; i < count_news(collector); i++)
        report_news(collector, &collector->news->heard[i]);
}

static void hear_news(void *context, const struct item_news *news)
{
    struct collector *collector = context;
    if (news->severity > SEVERITY_NOTE || news->certainty > POSSIBLE || news->id >= NEWS_IDS_MAX)
        return;
    struct heard_news *heard = find_news(collector, news->id);
    if (!heard)
        return;
    heard->now = *news;
    collector->news->is_unstored = true;
    report_news(collector, heard);
    if (asks_here(collector, news))
        collector_note_job_error(collector);
}

static void hear_reporter(void *context, const struct item_reporter *reporter)
{
    struct collector *collector = context;
    struct collector_news *news = keep_news(collector);
    if (!news)
        return;
    news->reporter = *reporter;
    report_all_news(collector);
}

static void hear_full(void *context, const struct item_full *full)
{
    struct collector_news *news = keep_news(context);
    if (news)
        news->full = *full;
}

static bool has_job_error(const struct collector *collector)
{
    for (int i = 0; i < count_news(collector); i++)
        if (asks_here(collector, &collector->news->heard[i].now))
            return true;
    return false;
}

/* What seemed to be an earlier job's may be of this one. */
static void hear_clock(void *context, int64_t offset_ns)
{
    struct collector *collector = context;
    struct collector_news *news = keep_news(collector);
    if (!news || news->clock_ns == offset_ns)
        return;
    news->clock_ns = offset_ns;
    report_all_news(collector);
    if (has_job_error(collector))
        collector_note_job_error(collector);
}

static struct trace *open_names(void *context)
{
    const struct collector *collector = context;
    return symbolizer_trace(collector->symbolizer);
}

int collector_job_open(struct collector *collector)
{
    const struct join_options options = {.transport = collector->options.transport,
                                         .sender = collector->options.sender,
                                         .on_news = hear_news,
                                         .on_reporter = hear_reporter,
                                         .on_full = hear_full,
                                         .on_clock = hear_clock,
                                         .names = open_names,
                                         .is_shown = is_shown_own,
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
    free(collector->job);
    collector->job = NULL;
}

void collector_job_forget(struct collector *collector)
{
    if (collector->news)
        free(collector->news->heard);
    free(collector->news);
    collector->news = NULL;
}

int collector_job_add_process(struct collector *collector, int process,
                              const struct process_info *info)
{
    if (!collector->job)
        return 0;
    struct collector_job *job = collector->job;
    if (!job->since_ns || info->realtime_ns < job->since_ns)
        job->since_ns = info->realtime_ns;
    int result = join_add_process(job->join, process, info);
    report_all_news(collector);
    if (has_job_error(collector))
        collector_note_job_error(collector);
    return result;
}

void collector_job_beat(struct collector *collector)
{
    if (collector->job)
        join_beat(collector->job->join, monotonic_now_ns());
}

int collector_job_feed(struct collector *collector, int process, const struct record *record)
{
    return collector->job ? join_feed(collector->job->join, collector->analyzer, process, record)
                          : 0;
}

int collector_job_add_finding(struct collector *collector, const struct finding *finding)
{
    return collector->job ? join_add_finding(collector->job->join, finding) : 0;
}

/* Once it is gone or full, each host reports what it sees that the hub has not reported. */
static void look_for_hub(struct collector *collector)
{
    struct collector_job *job = collector->job;
    bool was_alone = job->is_alone;
    job->is_alone = !join_has_hub(job->join) || is_hub_full(collector);
    if (job->is_alone && !was_alone)
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
    if (join_is_unkept(job->join) && !job->is_unkept_reported)
        fprintf(stderr, "ddpcheck: the hub's server has kept nothing of what this host sent for 10 "
                        "s (is its disk full?); until it does, this host reports what it sees "
                        "itself\n");
    job->is_unkept_reported |= join_is_unkept(job->join);
    look_for_hub(collector);
}

/* As collector_notify.h has it, without the number. */
static void write_open_news(struct text *text, const struct item_news *news)
{
    text_add(text, "%s %s %s %s | %s\n", severity_name((enum severity)news->severity),
             certainty_name((enum certainty)news->certainty), news->code, news->location,
             news->text);
}

int collector_job_store(struct collector *collector, struct error *err)
{
    struct text text = {0};
    if (!collector->job || !collector->news || !collector->news->is_unstored)
        return 0;
    for (int severity = SEVERITY_ERROR; severity <= SEVERITY_WARNING; severity++)
        for (int i = 0; i < count_news(collector); i++) {
            const struct item_news *news = &collector->news->heard[i].now;
            if (news->severity == severity && is_open_news(collector, news))
                write_open_news(&text, news);
        }
    char *lines = text_take(&text);
    int result = store_meta(collector->store, "hub_news", lines, err);
    free(lines);
    collector->news->is_unstored = result < 0;
    return result;
}

void collector_job_count(struct collector *collector)
{
    struct collector_summary *summary = collector->summary;
    const struct collector_job *job = collector->job;
    uint64_t since_ns;
    for (int i = 0; job && is_reporter(collector, &since_ns) && i < count_news(collector); i++) {
        const struct heard_news *heard = &collector->news->heard[i];
        const struct item_news *news = &heard->now;
        bool is_reported = heard->reported.state == FINDING_OPEN;
        if (!is_open_news(collector, news) || is_reported_here(collector, news) ||
            !is_shown_news(collector, news) ||
            (news->realtime_ns < since_ns && !is_reported)) /* it is another host's */
            continue;
        summary->found[news->severity]++;
    }
}

void collector_job_finish(struct collector *collector)
{
    if (!collector->job)
        return;
    join_finish(collector->job->join, collector->analyzer, is_reporter(collector, NULL),
                finish_patience_ns);
    look_for_hub(collector);
}

bool collector_job_sends(const struct collector *collector, const struct finding *finding)
{
    return collector_job_leaves(collector, finding) &&
           join_sends_finding(collector->job->join, finding);
}

bool collector_job_leaves(const struct collector *collector, const struct finding *finding)
{
    const struct check *check = check_of(finding->code);
    const struct join *join = collector->job ? collector->job->join : NULL;
    if (!join || !check)
        return false;
    bool is_sent = join_sends_finding(join, finding);
    bool spans_hosts = check->scope == SCOPE_JOB && finding->comm &&
                       join_spans_hosts(join, finding->comm);
    if (join_has_hub(join) && (spans_hosts || (is_sent && !is_hub_full(collector))))
        return true;
    return (is_sent || spans_hosts) && is_reported_by_hub(collector, finding);
}
