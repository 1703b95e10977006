/* run_findings.c: prints what the collector says of findings while the job runs. */
#include <stdio.h>
#include <string.h>

#include "cmd/run.h"
#include "collector/collector_notify.h"
#include "lib/base/text.h"

enum { STATES_SHOWN = 64 };

/* What the collector says of a finding: "7 error possible DC201 train.c:176 | ranks 0-2 wait". */
struct news {
    int id;
    char severity[16], certainty[16], code[16];
    const char *location; /* of location_bytes; none if that is 0 */
    int location_bytes;
    const char *what;
};

static bool read_news(struct news *news, const char *line)
{
    static const char separator[] = " | ";
    int location = 0;
    sscanf(line, "%d %15s %15s %15s%n", &news->id, news->severity, news->certainty, news->code,
           &location);
    const char *end = location ? strstr(line + location, separator) : NULL;
    if (!end)
        return false;
    news->location = line + location + 1;
    news->location_bytes = (int)(end - news->location);
    news->what = end + strlen(separator);
    return true;
}

static uint64_t hash_news(const struct news *news)
{
    return hash_text(hash_text(hash_text(HASH_START, news->certainty), news->code), news->what);
}

static int find_job_news(const struct watched_run *run, const struct news *news)
{
    for (int i = 0; i < run->job_news.count; i++)
        if (run->job_news.hash[i] == hash_news(news))
            return i;
    return -1;
}

/* Whether it was printed, by whichever collector of this host heard it. */
static bool is_printed_news(struct watched_run *run, const struct news *news)
{
    if (news->id < JOB_NEWS_FIRST)
        return false;
    run->job_news.any = true;
    if (find_job_news(run, news) >= 0)
        return true;
    if (run->job_news.count < JOB_NEWS_KEPT)
        run->job_news.hash[run->job_news.count++] = hash_news(news);
    return false;
}

bool run_print_finding(struct watched_run *run, const char *line)
{
    struct news news;
    if (!read_news(&news, line) || is_printed_news(run, &news)) {
        run->details[0] = '\0'; /* they are not the next finding's */
        return false;
    }
    bool is_error = strcmp(news.severity, "error") == 0;
    bool is_possible = certainty_of_name(news.certainty) == POSSIBLE;
    bool was_possible = rankset_has(&run->possible, news.id);
    if (is_possible)
        rankset_add(&run->possible, news.id); /* without memory it is printed twice */
    if (was_possible && !is_possible && !run->options.quiet)
        fprintf(stderr, "ddpcheck: %s is certain now: %s\n", news.code, news.what);
    else if (!run->options.quiet)
        fprintf(stderr, "ddpcheck: %.*s%s%s%s %s: %s\n%s", news.location_bytes, news.location,
                news.location_bytes ? ": " : "", is_possible ? "possible " : "", news.severity,
                news.code, news.what, run->details);
    run->details[0] = '\0';
    if (!run->options.quiet && !run->said_report)
        run_print_report(run, "          see: ");
    run->said_report = true;
    run->found[SEVERITY_ERROR] += is_error && !was_possible;
    return is_error && !is_possible && run->options.on_finding == ON_FINDING_ABORT;
}

void run_keep_detail(struct watched_run *run, const char *text)
{
    size_t used = strlen(run->details);
    snprintf(run->details + used, sizeof run->details - used, "          %s\n", text);
}

void run_print_state(struct watched_run *run, const char *text)
{
    if (!run->options.quiet && run->states++ < STATES_SHOWN)
        fprintf(stderr, "ddpcheck: %s\n", text);
}

void run_print_withdrawn(struct watched_run *run, const char *line)
{
    struct news news;
    if (!read_news(&news, line))
        return;
    int place = news.id >= JOB_NEWS_FIRST ? find_job_news(run, &news) : -1;
    if (place >= 0)
        run->job_news.hash[place] = run->job_news.hash[--run->job_news.count];
    if (!run->options.quiet)
        fprintf(stderr, "ddpcheck: %s is withdrawn: %s\n", news.code, news.what);
}
