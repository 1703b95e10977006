/* report_hub.c: the trace of one host of a job on several: what the job's hub had reported to it.
 */
#include "cmd/report/report_hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/report_hub_now.h"
#include "lib/finding/finding.h"
#include "lib/trace/trace.h"

/* "error possible DC201 train.c:12 | ranks 0-2 wait", as the collector stored it. */
static bool read_part_news(char *line, struct part_news *news)
{
    char *save, *bar = strstr(line, " | ");
    if (!bar)
        return false;
    *bar = 0;
    char *severity = strtok_r(line, " ", &save), *certainty = strtok_r(NULL, " ", &save);
    char *code = strtok_r(NULL, " ", &save);
    if (!code)
        return false;
    *news = (struct part_news){.severity = severity_of_name(severity),
                               .certainty = certainty,
                               .code = code,
                               .location = save && *save ? save : "",
                               .what = bar + strlen(" | ")};
    return true;
}

void hub_part_read(struct hub_part *part, struct trace *trace, int database)
{
    *part = (struct hub_part){.address = trace_database_meta(trace, database, "hub"),
                              .text = trace_database_meta(trace, database, "hub_news")};
    char *save, *now = part->address ? hub_lines_now(part->address) : NULL;
    if (now) {
        free(part->text);
        part->text = now;
        part->is_now = true;
    }
    for (char *line = part->text ? strtok_r(part->text, "\n", &save) : NULL;
         line && part->count < HUB_NEWS_MAX; line = strtok_r(NULL, "\n", &save))
        part->count += read_part_news(line, &part->news[part->count]);
}

int hub_part_count(const struct hub_part *part, enum severity severity)
{
    int count = 0;
    for (int i = 0; i < part->count; i++)
        count += part->news[i].severity == severity;
    return count;
}

void hub_part_print(const struct hub_part *part, const char *hosts, struct page *page)
{
    if (!part->address)
        return;
    page->indent = 0;
    page_format(page, STYLE_PLAIN,
                "This is the part of %s in a job on several hosts. Findings about ranks of "
                "several hosts are the hub's: ddpcheck report nats://TOKEN@%s",
                *hosts ? hosts : "one host", part->address);
    page_line(page);
    static const char *const said[2][2] = {
        {"The hub had reported no finding to this host when it was recorded.",
         "The hub had reported to this host:"},
        {"The hub answers: no finding.", "The hub answers:"}};
    page_words(page, STYLE_PLAIN, said[part->is_now][part->count > 0]);
    for (int i = 0; i < part->count; i++) {
        const struct part_news *news = &part->news[i];
        bool is_possible = strcmp(news->certainty, certainty_name(POSSIBLE)) == 0;
        page_line(page);
        page_format(page, STYLE_PLAIN, "  %s%s%s%s %s: %s", news->location,
                    *news->location ? ": " : "", is_possible ? "possible " : "",
                    severity_name(news->severity), news->code, news->what);
    }
    page_gap(page);
}

void hub_part_free(struct hub_part *part)
{
    free(part->address);
    free(part->text);
}
