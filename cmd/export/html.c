/* HTML: one page that needs nothing else, for tickets: it holds its style, its script and its data,
 * asks no network (its own content policy forbids it), and says everything but the timeline's
 * details without the script. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/html.h"
#include "cmd/export/text.h"
#include "export_page.h" /* page/page.css, page/page.js and page/live.js */
#include "lib/base/moment.h"
#include "lib/base/name_ranges.h"
#include "lib/base/text.h"
#include "lib/import/import.h"

enum { TEXT_BYTES = 1024 };

/* "2 errors, 1 note", and how it is to be taken. */
static const char *verdict_of(const struct report *report, char *text, size_t bytes)
{
    static const char *const name[][2] = {
        {"error", "errors"}, {"warning", "warnings"}, {"note", "notes"}};
    static const char *const class[] = {"error", "warning", "note"};
    size_t used = 0;
    int worst = -1;
    for (int i = SEVERITY_NOTE; i >= SEVERITY_ERROR; i--)
        worst = report->count[i] ? i : worst;
    for (int i = SEVERITY_ERROR; i <= SEVERITY_NOTE; i++)
        if (report->count[i])
            used += (size_t)snprintf(text + used, bytes - used, "%s%d %s", used ? ", " : "",
                                     report->count[i],
                                     plural((uint64_t)report->count[i], name[i][0], name[i][1]));
    if (worst >= 0)
        return class[worst];
    if (report->events == 0)
        snprintf(text, bytes, "Nothing was recorded");
    else if (report_incomplete(report))
        snprintf(text, bytes, "No finding so far");
    else
        snprintf(text, bytes, "No finding");
    return report_incomplete(report) ? "warning" : "good";
}

static void put_fact(const struct html *html, const char *name, const char *value)
{
    if (!*value)
        return;
    fprintf(html->out, "<div><dt>%s<dd>", name);
    html_text(html, value);
    fputs("</div>", html->out);
}

/* Who sets the launcher's variables need not be that launcher: programs that start their own ranks
 * set torchrun's. */
static void put_origin(const struct html *html, const char *launcher)
{
    char text[TEXT_BYTES];
    bool is_import = import_source_find(launcher) != NULL;
    if (is_import)
        put_fact(html, "imported from", launcher);
    else if (strcmp(launcher, "explicit") == 0)
        put_fact(html, "ranks from", "DDPCHECK_RANK");
    else if (strcmp(launcher, "env") == 0)
        put_fact(html, "ranks from", "RANK");
    else if (*launcher && strcmp(launcher, "none") != 0) {
        snprintf(text, sizeof text, "%s's variables", launcher);
        put_fact(html, "ranks from", text);
    }
}

/* "1024 processes on n[00000-00127]" */
static void put_job(const struct html *html)
{
    const struct trace *trace = html->export->report->trace;
    int processes = html->names.processes, named = 0;
    const char **host = calloc((size_t)processes, sizeof *host);
    for (int i = 0; host && i < processes; i++)
        if (*trace_process(trace, i)->host)
            host[named++] = trace_process(trace, i)->host;
    char *hosts = named ? name_ranges(host, names_sort(host, named)) : NULL;
    fprintf(html->out, "<div><dt>job<dd>%d %s", processes,
            plural((uint64_t)processes, "process", "processes"));
    if (hosts) {
        fputs(" on ", html->out);
        html_text(html, hosts);
    }
    fputs("</div>", html->out);
    free(hosts);
    free(host);
}

static void put_facts(const struct html *html)
{
    const struct report *report = html->export->report;
    const struct process_info *info = html->names.processes ? trace_process(report->trace, 0)
                                                            : NULL;
    char text[TEXT_BYTES];
    fputs("<dl class=facts>", html->out);
    if (info) {
        put_fact(html, "program", *info->command ? info->command : info->program);
        put_job(html);
        put_origin(html, info->launcher);
        if (info->nccl_version > 0) {
            snprintf(text, sizeof text, "NCCL %d.%d.%d", info->nccl_version / 10000,
                     info->nccl_version / 100 % 100, info->nccl_version % 100);
            if (info->cuda_runtime_version > 0)
                snprintf(text + strlen(text), sizeof text - strlen(text), ", CUDA %d.%d",
                         info->cuda_runtime_version / 1000, info->cuda_runtime_version / 10 % 100);
            put_fact(html, "libraries", text);
        }
    }
    if (report->end_ns) {
        moment_recorded(report->begin_ns, report->end_ns, text, sizeof text);
        put_fact(html, report->collecting ? "recorded so far" : "recorded", text);
    }
    fputs("</dl>", html->out);
}

/* The worst finding in words, as a colleague reads it first: "DC201: ranks 0-2 wait in ...". The
 * caller's; NULL: no error or warning was found. */
static char *headline_of(const struct html *html)
{
    struct report *report = html->export->report;
    struct fault_list faults;
    struct text text = {0};
    report_faults_find(&faults, report, FINDING_OPEN, true);
    const struct finding *worst = faults.count ? faults.fault[0].finding : NULL;
    if (worst && worst->severity != SEVERITY_NOTE)
        text_add(&text, "%s%s: %s", worst->certainty == POSSIBLE ? "possible " : "",
                 code_name(worst->code), worst->what);
    fault_list_free(&faults);
    return text_take(&text);
}

static void put_html_head(const struct html *html)
{
    char verdict[128], *headline = headline_of(html);
    const char *class = verdict_of(html->export->report, verdict, sizeof verdict);
    FILE *out = html->out;
    fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
          "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<meta "
          "name=color-scheme content=\"light dark\">\n",
          out);
    if (!html->export->is_live) /* else the server's header has it */
        fputs("<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
              "'unsafe-inline'; script-src 'unsafe-inline'\">\n",
              out);
    fputs("<title>", out);
    html_text(html, headline ? headline : verdict);
    fputs(" - ddpcheck</title>\n<style>\n", out);
    fputs(page_css, out);
    fprintf(out,
            "</style></head>\n<body class=no-script>\n<a class=skip href=#findings>To the "
            "findings</a>\n"
            "<header class=%s%s><p class=brand>ddpcheck <span>%s</span></p>",
            class, html->export->report->collecting ? " data-recording" : "", DDPCHECK_VERSION);
    fputs(headline ? "<p class=verdict>" : "<h1>", out);
    html_text(html, verdict);
    fputs(headline ? "</p><h1 class=headline>" : "</h1>", out);
    if (headline) {
        html_text(html, headline);
        fputs("</h1>", out);
    }
    free(headline);
    put_facts(html);
    fputs("</header>\n<main>\n", out);
}

static void put_dropped(const struct html *html)
{
    const struct report *report = html->export->report;
    const struct trace_dropped *dropped = &report->dropped;
    char until[32];
    if (dropped->records)
        fprintf(html->out,
                "<li><strong>not checked again before %s</strong>: %" PRIu64
                " records were dropped (--keep), %" PRIu64
                " of them of finished calls; what was found while they were recorded is reported",
                moment_clock(dropped->until_ns, report->end_ns, until, sizeof until),
                dropped->records, dropped->calls);
}

static void put_not_checked(const struct html *html)
{
    char why[512];
    for (int i = 0; i < html->export->not_checked_count; i++) {
        const struct not_checked *entry = &html->export->not_checked[i];
        fputs("<li><strong>not checked</strong>: ", html->out);
        html_text(html, entry->lack->codes);
        fputs(", because ", html->out);
        html_text(html, not_checked_text(entry, why, sizeof why));
    }
}

/* What weakens the verdict. */
static void put_caveats(const struct html *html)
{
    const struct report *report = html->export->report;
    fputs("<section id=trace><h2>The trace</h2><ul class=trace>", html->out);
    for (int i = 0; i < report->sources; i++) {
        const struct report_source *source = &report->source[i];
        fputs("<li><code>", html->out);
        html_text(html, source->path);
        fprintf(html->out, "</code>: %" PRIu64 " events of %d %s", source->events,
                source->processes, plural((uint64_t)source->processes, "process", "processes"));
        fputs(source->collecting ? ", still being recorded"
              : source->complete ? ""
                                 : "; <strong>its end is missing</strong>",
              html->out);
    }
    if (report->unseen)
        fprintf(html->out, "<li><strong>Of %d %s no NCCL call was recorded</strong>",
                report->unseen, plural((uint64_t)report->unseen, "rank", "ranks"));
    if (report->lost_total)
        fprintf(html->out,
                "<li><strong>%" PRIu64 " records were lost</strong>: findings may be missing",
                report->lost_total);
    put_dropped(html);
    if (*report->damage.text) {
        fputs("<li><strong>damaged</strong>: ", html->out);
        html_text(html, report->damage.text);
    }
    if (report->choice->suppressed || report->choice->known_again)
        fprintf(html->out, "<li>%d suppressed, %d known from the baseline are not shown",
                report->choice->suppressed, report->choice->known_again);
    put_not_checked(html);
    fputs("</ul></section>\n", html->out);
}

static void find_slow(void *found, const struct finding *finding)
{
    const struct check *check = check_of(finding->code);
    *(bool *)found |= check && code_family(check->code) == FAMILY_SPEED &&
                      check->needs & LACKS_DURATIONS; /* on the map */
}

static void put_scripts(const struct html *html)
{
    fputs("</main>\n", html->out);
    if (html->export->is_live)
        fputs("<script src=page.js></script>\n<script src=live.js></script>\n", html->out);
    else
        fprintf(html->out, "<script>\n%s</script>\n", page_js);
    fputs("</body></html>\n", html->out);
}

const char *html_script(bool is_live)
{
    return is_live ? live_js : page_js;
}

void html_waiting(FILE *out, const char *why)
{
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
            "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n"
            "<meta name=color-scheme content=\"light dark\">\n"
            "<title>ddpcheck</title>\n<style>\n%s</style></head>\n"
            "<body><header><p class=brand>ddpcheck <span>%s</span></p><p class=verdict>",
            page_css, DDPCHECK_VERSION);
    text_xml(why, out);
    fputs("</p></header>\n<script src=page.js></script>\n<script src=live.js></script>\n"
          "</body></html>\n",
          out);
}

int export_html(const struct export *export, struct error *err)
{
    struct html html = {.export = export, .out = export->out};
    bool is_slow = false;
    if (names_load(&html.names, export->report, err))
        return -1;
    report_visit_findings(export->report, FINDING_OPEN, find_slow, &is_slow);
    put_html_head(&html);
    html_findings(&html);
    int failed = html_map(&html);
    int result = html_waits(&html, err);
    failed |= is_slow ? html_speed(&html) : 0; /* what its reader looks for comes first */
    html_ranks(&html);
    if (!result)
        result = html_timeline(&html, err);
    failed |= is_slow ? 0 : html_speed(&html);
    if (failed && !result)
        result = error_memory(err, "can't draw the ranks");
    html_stacks(&html);
    put_caveats(&html);
    put_scripts(&html);
    names_free(&html.names);
    return result;
}
