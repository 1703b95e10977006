/* The findings of the page, and what their codes mean. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/html.h"
#include "cmd/export/place.h"
#include "analyzer/version_facts.h"
#include "cmd/report/report_cause.h"
#include "cmd/report/report_culprit.h"
#include "cmd/report/report_model.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_origin.h"
#include "lib/finding/finding_said.h"
#include "lib/finding/finding_site.h"
#include "lib/base/moment.h"

enum { RANKS_BYTES = 512, FINDINGS_MOST = 500, CODES_MOST = 64 };

struct findings_writer {
    const struct html *html;
    int number;
    enum code code[CODES_MOST]; /* that occur */
    int codes;
};

/* The sentence with a capital, unless it begins with a name, and a full stop. */
static void put_sentence(const struct html *html, const char *text)
{
    size_t word = strspn(text, "abcdefghijklmnopqrstuvwxyz");
    bool is_word = word > 0 && (!text[word] || strchr(" ,;:", text[word]));
    size_t bytes = strlen(text);
    if (is_word)
        putc(*text - 'a' + 'A', html->out);
    html_text(html, text + is_word);
    if (bytes && !strchr(".!?", text[bytes - 1]))
        putc('.', html->out);
}

static void put_html_side(const struct html *html, const struct finding *finding, int index)
{
    const struct finding_side *side = &finding->side[index];
    struct report *report = html->export->report;
    struct shown_frames frames;
    char ranks[RANKS_BYTES], clock[64], duration[64];
    uint64_t end_ns = report->end_ns;
    bool several = rankset_count(&side->ranks) != 1;
    fprintf(html->out, "<li><h4>%s ", several ? "Ranks" : "Rank");
    html_rank_ranges(html, rankset_brief(&side->ranks, ranks, sizeof ranks));
    fputs("</h4><div><p class=call><code>", html->out);
    html_text(html, side->call);
    fputs("</code></p>", html->out);
    finding_side_frames(report->trace, finding, index, SIDE_STACK_ACT, &frames);
    html_frames(html, &frames);
    if (frames.shown >= 0)
        html_source(html, side->process, &frames.frame[frames.shown]);
    if (*side->where && strcmp(side->where, side->call)) {
        bool is_address;
        char where[WHERE_BYTES];
        uint64_t stack = stack_of_where(report, side, &is_address);
        fprintf(html->out, "<p class=where><span class=label>%s</span> ",
                side->now.did == DID_BUSY_BEFORE ? "then" : "now");
        html_text(html, where_of_side(report, side, where, sizeof where));
        fputs("</p>", html->out);
        if (stack && stack != side->stack) {
            site_shown_frames(report->trace, side->process, stack, is_address, &frames);
            html_frames(html, &frames);
        }
    }
    fputs("<p class=meta>", html->out);
    if (*side->phase) {
        fputs("<span><span class=label>phase</span> ", html->out);
        html_text(html, side->phase);
        fputs("</span> ", html->out);
    }
    if (side->since_ns) {
        fprintf(html->out, "<span><span class=label>since</span> %s",
                moment_clock(side->since_ns, end_ns, clock, sizeof clock));
        if (side->since_ns <= end_ns)
            fprintf(html->out, ", %s before the end",
                    moment_duration(end_ns - side->since_ns, duration, sizeof duration));
        fputs("</span> ", html->out);
    }
    if (!several && side->process >= 0) {
        const struct process_info *info = trace_process(html->export->report->trace, side->process);
        if (info->pid > 0 && *info->host) { /* imports know neither */
            fprintf(html->out, "<span><span class=label>process</span> %d on ", info->pid);
            html_text(html, info->host);
            fputs("</span>", html->out);
        }
    }
    fputs("</p></div>", html->out);
}

static void note_code(struct findings_writer *writer, enum code code)
{
    for (int i = 0; i < writer->codes; i++)
        if (writer->code[i] == code)
            return;
    if (writer->codes < CODES_MOST)
        writer->code[writer->codes++] = code;
}

static void put_version_fact(const struct html *html, const struct finding *finding)
{
    char version[VERSION_RANGE_BYTES];
    int versions[LIBRARIES];
    const struct version_fact *fact = report_version_fact(html->export->report, finding, versions);
    if (!fact)
        return;
    fprintf(html->out, "<p class=todo><span class=label>%s</span> ",
            version_fact_job(fact, versions, version, sizeof version));
    put_sentence(html, fact->words);
    fputs("</p>", html->out);
}

static void put_likely_cause(const struct html *html, const struct finding *finding)
{
    const struct cause *cause = report_cause(html->export->report, finding);
    if (!cause)
        return;
    fputs("<p class=todo><span class=label>Likely</span> ", html->out);
    html_text(html, cause->what);
    fputs(" <span class=label>Check</span> ", html->out);
    html_text(html, cause->look);
    fputs("</p>", html->out);
}

/* The user's line, as in the report: where to look comes before what happened. */
static void put_location(const struct html *html, const struct finding *finding)
{
    char place[PATH_MAX];
    finding_location(html->export->report->trace, finding, sizeof place, place, sizeof place);
    if (!*place)
        return;
    fputs("<p class=at><code>", html->out);
    html_path(html, place);
    fputs("</code></p>", html->out);
}

static void put_others(const struct html *html, const char *sentence)
{
    if (!*sentence)
        return;
    fputs("<p class=others>", html->out);
    html_text(html, sentence);
    fputs("</p>", html->out);
}

static void put_html_fault(struct findings_writer *writer, const struct fault_group *fault)
{
    const struct finding *finding = fault->finding;
    char others[RANKS_BYTES + 128], culprit[CULPRIT_BYTES];
    const struct html *html = writer->html;
    const struct check *check = check_of(finding->code);
    FILE *out = html->out;
    if (++writer->number > FINDINGS_MOST)
        return;
    note_code(writer, finding->code);
    fprintf(out,
            "<article class=%s id=f-%016" PRIx64
            "><h3><span class=severity>%s</span>%s <a href=#about-%s>%s</a> ",
            severity_name(finding->severity), finding->fingerprint,
            severity_name(finding->severity),
            finding->certainty == POSSIBLE ? "<span class=possible>possible</span>" : "",
            code_name(finding->code), code_name(finding->code));
    html_text(html, check ? check->title : "");
    fputs("</h3>", out);
    put_location(html, finding);
    fputs("<p class=what>", out);
    char *sentence = finding_sentence(html->export->report->trace, finding);
    put_sentence(html, sentence ? sentence : finding->what);
    free(sentence);
    fputs("</p>", out);
    put_others(html, report_fault_others(fault, others, sizeof others));
    put_others(html, culprit_text(html->export->report, finding, culprit));
    if (*finding->todo) {
        fputs("<p class=todo><span class=label>Fix</span> ", out);
        put_sentence(html, finding_fix(html->export->report->trace, finding));
        fputs("</p>", out);
    }
    put_version_fact(html, finding);
    put_likely_cause(html, finding);
    fputs("<ul class=sides>", out);
    for (int i = 0; i < finding->sides; i++)
        put_html_side(html, finding, i);
    fputs("</ul>", out);
    fprintf(out, "<p class=meta><span>%s</span>", certainty_name(finding->certainty));
    if (finding->comm)
        fprintf(out,
                " <span><span class=label>communicator</span> <code>0x%016" PRIx64 "</code></span>",
                finding->comm);
    if (finding->has_number)
        fprintf(out, " <span><span class=label>operation</span> #%" PRIu64 "</span>",
                finding->number);
    if (finding->times > 1)
        fprintf(out, " <span><span class=label>seen</span> %" PRIu64 " times</span>",
                finding->times);
    fprintf(out,
            " <span><span class=label>fingerprint</span> <a class=permalink href=#f-%016" PRIx64
            "><code>%016" PRIx64 "</code></a></span></p></article>\n",
            finding->fingerprint, finding->fingerprint);
}

static void put_listing(const struct html *html, const char *title, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(html->out, "<h5>%s</h5><pre>", title);
    html_text(html, text);
    fputs("</pre>", html->out);
}

static void put_causes(const struct html *html, const struct cause *cause)
{
    if (!cause)
        return;
    fputs("<h5>Usual causes, the most common first</h5><ul>", html->out);
    for (; cause->what; cause++) {
        fputs("<li>", html->out);
        html_text(html, cause->what);
        fputs(" <em>Look at:</em> ", html->out);
        html_text(html, cause->look);
        fputs("</li>", html->out);
    }
    fputs("</ul>", html->out);
}

static void put_version_facts(const struct html *html, enum code code)
{
    char range[VERSION_RANGE_BYTES];
    const struct version_fact *fact = version_fact_of_code(code, NULL);
    if (!fact)
        return;
    fputs("<h5>By version</h5><ul>", html->out);
    for (; fact; fact = version_fact_of_code(code, fact)) {
        fprintf(html->out, "<li>%s: ", version_fact_range(fact, range, sizeof range));
        html_text(html, fact->words);
        fputs(".</li>", html->out);
    }
    fputs("</ul>", html->out);
}

static void put_code(const struct html *html, enum code code)
{
    const struct check *check = check_of(code);
    if (!check)
        return;
    fprintf(html->out,
            "<details class=about id=about-%s><summary>What %s means, and how to fix it</summary>",
            code_name(code), code_name(code));
    html_paragraphs(html, check->text);
    put_version_facts(html, check->code);
    put_causes(html, check->causes);
    put_listing(html, "Minimal reproducer", check->example);
    put_listing(html, "Fix (PyTorch)", check->fix_torch);
    put_listing(html, "Fix (C/CUDA)", check->fix_c);
    fputs("</details>\n", html->out);
}

static void put_faults(struct findings_writer *writer, enum finding_state state)
{
    struct fault_list faults;
    report_faults_find(&faults, writer->html->export->report, state, true);
    for (int i = 0; i < faults.count; i++)
        put_html_fault(writer, &faults.fault[i]);
    fault_list_free(&faults);
}

void html_findings(const struct html *html)
{
    struct findings_writer writer = {.html = html};
    fputs("<section id=findings><h2>Findings</h2>\n", html->out);
    put_faults(&writer, FINDING_OPEN);
    if (writer.number == 0)
        fprintf(html->out, "<p class=none>No findings%s.</p>",
                html->export->not_checked_count
                    ? ", but <a href=#trace>not all of it could be checked</a>"
                    : "");
    if (writer.number > FINDINGS_MOST)
        fprintf(html->out, "<p>%d more: <code>ddpcheck report</code> shows all.</p>",
                writer.number - FINDINGS_MOST);
    writer.number = 0;
    if (html->export->report->resolved > html->export->report->consequences) {
        fputs("<details class=resolved><summary>Withdrawn, or the job got over it</summary>",
              html->out);
        put_faults(&writer, FINDING_RESOLVED);
        fputs("</details>", html->out);
    }
    for (int i = 0; i < writer.codes; i++)
        put_code(html, writer.code[i]);
    fputs("</section>\n", html->out);
}
