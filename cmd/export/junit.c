/* JUnit: a test case for each code, so that "no finding" is visible; one failure in it however many
 * findings there are, since readers take one. The elements and their order are those of Jenkins'
 * junit-10.xsd. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options/codes.h"
#include "cmd/export/export.h"
#include "cmd/export/place.h"
#include "cmd/report/report_culprit.h"
#include "cmd/export/text.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_origin.h"
#include "lib/base/moment.h"

/* The findings of one code. */
struct gathered {
    enum code code;
    int count;
    enum severity worst;
    char *first; /* what the first says */
    FILE *text;
    const struct export *export;
};

static void put_junit_side(const struct export *export, const struct finding *finding, int index,
                           FILE *out)
{
    const struct finding_side *side = &finding->side[index];
    char ranks[256];
    struct export_place place;
    fprintf(out, "  %s: %s", rankset_words(&side->ranks, ranks, sizeof ranks), side->call);
    if (place_of_side(export, finding, index, &place))
        fprintf(out, " at %s:%d", place.path, place.line);
    if (*side->where && strcmp(side->where, side->call))
        fprintf(out, ", now %s", side->where);
    putc('\n', out);
}

static void gather_finding(void *context, const struct finding *finding)
{
    struct gathered *gathered = context;
    char culprit[CULPRIT_BYTES];
    if (finding->code != gathered->code)
        return;
    char *sentence = finding_sentence(gathered->export->report->trace, finding);
    const char *what = sentence ? sentence : finding->what;
    if (gathered->count++ == 0) {
        gathered->first = strdup(what);
        gathered->worst = finding->severity;
    }
    if (finding->severity < gathered->worst)
        gathered->worst = finding->severity;
    fprintf(gathered->text, "%s, %s: %s\n", severity_name(finding->severity),
            certainty_name(finding->certainty), what);
    free(sentence);
    if (*culprit_text(gathered->export->report, finding, culprit))
        fprintf(gathered->text, "  %s\n", culprit);
    for (int i = 0; i < finding->sides; i++)
        put_junit_side(gathered->export, finding, i, gathered->text);
    fprintf(gathered->text, "  %s\n  fingerprint %016" PRIx64 "\n",
            finding_fix(gathered->export->report->trace, finding), finding->fingerprint);
}

static void print_junit_result(const struct gathered *gathered, const char *text, FILE *out)
{
    if (gathered->worst == SEVERITY_NOTE) { /* a hint is no failure */
        fputs("<system-out>", out);
        text_xml(text, out);
        fputs("</system-out>", out);
        return;
    }
    fprintf(out, "<failure type=\"%s\" message=\"", code_name(gathered->code));
    text_xml(gathered->first ? gathered->first : "", out);
    if (gathered->count > 1)
        fprintf(out, " (and %d more)", gathered->count - 1);
    fputs("\">", out);
    text_xml(text, out);
    fputs("</failure>", out);
}

static bool is_chosen(const struct export *export, enum code code)
{
    const struct choice_options *options = &export->report->choice->options;
    return codes_have(options->only, code) &&
           !(options->disable && codes_have(options->disable, code));
}

/* Writes the case to `out` and counts. Returns 0, or -1 when memory is short. */
static int print_case(const struct export *export, const struct check *check, FILE *out,
                      int *failures, int *skipped)
{
    char *text = NULL, why[512];
    const struct not_checked *blind;
    size_t bytes;
    struct gathered gathered = {
        .code = check->code, .export = export, .text = open_memstream(&text, &bytes)};
    if (!gathered.text)
        return -1;
    report_visit_findings(export->report, FINDING_OPEN, gather_finding, &gathered);
    bool failed = fclose(gathered.text) || (gathered.count && !gathered.first);
    fprintf(out, "    <testcase classname=\"ddpcheck.%s\" name=\"%s ",
            family_name(code_family(check->code)), code_name(check->code));
    text_xml(check->title, out);
    fputs("\">", out);
    if (gathered.count && !failed) {
        print_junit_result(&gathered, text, out);
        *failures += gathered.worst != SEVERITY_NOTE;
    } else if (!is_chosen(export, check->code)) {
        fputs("<skipped message=\"left out by --only or --disable\"/>", out);
        ++*skipped;
    } else if ((blind = not_checked_code(export->not_checked, export->not_checked_count,
                                         code_name(check->code)))) {
        fputs("<skipped message=\"not checked: ", out);
        text_xml(not_checked_text(blind, why, sizeof why), out);
        fputs("\"/>", out);
        ++*skipped;
    }
    fputs("</testcase>\n", out);
    free(gathered.first);
    free(text);
    return failed ? -1 : 0;
}

/* Whether the trace can prove that nothing happened. */
static void print_trace_case(const struct report *report, FILE *out)
{
    fputs(
        "    <testcase classname=\"ddpcheck.trace\" name=\"the trace has all ranks and its end\">",
        out);
    if (*report->damage.text) {
        fputs("<error type=\"damaged\" message=\"", out);
        text_xml(report->damage.text, out);
        fputs("\"/>", out);
    } else if (report_incomplete(report)) {
        fprintf(out,
                "<error type=\"incomplete\" message=\"%" PRIu64
                " events, %d members without a trace, %s\"/>",
                report->events, report->unseen, report->complete ? "ended in order" : "no end");
    }
    fputs("</testcase>\n", out);
}

static void print_suite(const struct report *report, const char *cases, int count, int failures,
                        int skipped, FILE *out)
{
    int errors = *report->damage.text || report_incomplete(report);
    char begin[64] = "1970-01-01T00:00:00";
    if (report->begin_ns)
        moment_iso(report->begin_ns, begin, sizeof begin)[strlen("1970-01-01T00:00:00")] = '\0';
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ddpcheck\" "
            "tests=\"%d\" failures=\"%d\" errors=\"%d\">\n"
            "  <testsuite name=\"ddpcheck\" tests=\"%d\" failures=\"%d\" errors=\"%d\" "
            "skipped=\"%d\" time=\"%.3f\" timestamp=\"%s\" hostname=\"",
            count, failures, errors, count, failures, errors, skipped,
            (double)(report->end_ns - report->begin_ns) / 1e9, begin);
    text_xml(report->sources ? report->source[0].hosts : "", out);
    fputs("\">\n", out);
    fputs(cases, out);
    fputs("  </testsuite>\n</testsuites>\n", out);
}

int export_junit(const struct export *export, struct error *err)
{
    char *cases = NULL;
    size_t bytes;
    int count = 1, failures = 0, skipped = 0, result = 0;
    FILE *out = open_memstream(&cases, &bytes);
    if (!out)
        return error_memory(err, "can't write the test cases");
    print_trace_case(export->report, out);
    for (const struct check *check = check_next(NULL); check && result == 0;
         check = check_next(check)) {
        result = print_case(export, check, out, &failures, &skipped);
        count++;
    }
    if (fclose(out) || result)
        result = error_memory(err, "can't write the test cases");
    else
        print_suite(export->report, cases, count, failures, skipped, export->out);
    free(cases);
    return result;
}
