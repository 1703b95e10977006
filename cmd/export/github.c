/* Workflow commands of GitHub Actions: a line each, which its runner turns into annotations of the
 * sources. */
#include <stdlib.h>
#include <string.h>

#include "cmd/export/export.h"
#include "cmd/export/place.h"
#include "cmd/report/report_culprit.h"
#include "lib/finding/finding_fix.h"
#include "lib/finding/finding_origin.h"
#include "lib/base/printable.h"

/* GitHub shows 10 annotations of each kind for a step, and drops the others. */
enum { SHOWN_MOST = 10 };

struct github_writer {
    const struct export *export;
    int shown[SEVERITY_NOTE + 1];
};

static const char *const commands[] = {
    [SEVERITY_ERROR] = "error", [SEVERITY_WARNING] = "warning", [SEVERITY_NOTE] = "notice"};

/* Text of a command: '%' and ends of lines as %XX; in a property ':' and ',' too. */
static void put_escaped(const char *text, bool property, FILE *out)
{
    size_t length;
    for (; *text; text += length) {
        bool prints = printable_next(text, &length);
        if (strchr("%\r\n", *text) || (property && strchr(":,", *text)))
            fprintf(out, "%%%02X", (unsigned char)*text);
        else
            printable_put(text, prints ? length : 1, out);
    }
}

static void put_github_side(const struct github_writer *writer, const struct finding *finding,
                            int index)
{
    const struct finding_side *side = &finding->side[index];
    char ranks[256];
    struct export_place place;
    FILE *out = writer->export->out;
    fprintf(out, "%%0A%s: ", rankset_words(&side->ranks, ranks, sizeof ranks));
    put_escaped(side->call, false, out);
    if (place_of_side(writer->export, finding, index, &place)) {
        fputs(" at ", out);
        put_escaped(place.path, false, out);
        fprintf(out, ":%d", place.line);
    }
    if (*side->where && strcmp(side->where, side->call)) {
        fputs(", now ", out);
        put_escaped(side->where, false, out);
    }
}

static void print_github_finding(void *context, const struct finding *finding)
{
    struct github_writer *writer = context;
    FILE *out = writer->export->out;
    const struct check *check = check_of(finding->code);
    struct export_place place;
    char culprit[CULPRIT_BYTES];
    if (writer->shown[finding->severity]++ >= SHOWN_MOST)
        return;
    place_of_finding(writer->export, finding, &place);
    fprintf(out, "::%s file=", commands[finding->severity]);
    put_escaped(place.path, true, out);
    fprintf(out, ",line=%d,title=%s", place.line, code_name(finding->code));
    if (check) {
        fputs("%3A ", out);
        put_escaped(check->title, true, out);
    }
    fputs("::", out);
    if (finding->certainty == POSSIBLE)
        fputs("(possible) ", out);
    char *sentence = finding_sentence(writer->export->report->trace, finding);
    put_escaped(sentence ? sentence : finding->what, false, out);
    free(sentence);
    if (*culprit_text(writer->export->report, finding, culprit)) {
        fputs("%0A", out);
        put_escaped(culprit, false, out);
    }
    for (int i = 0; i < finding->sides; i++)
        put_github_side(writer, finding, i);
    if (*finding->todo) {
        fputs("%0A", out);
        put_escaped(finding_fix(writer->export->report->trace, finding), false, out);
    }
    putc('\n', out);
}

int export_github(const struct export *export, struct error *err)
{
    (void)err;
    struct github_writer writer = {.export = export};
    report_visit_findings(export->report, FINDING_OPEN, print_github_finding, &writer);
    for (int i = 0; i <= SEVERITY_NOTE; i++)
        if (writer.shown[i] > SHOWN_MOST)
            fprintf(export->out,
                    "ddpcheck: %d more of kind '%s' are not annotated, because GitHub shows %d of "
                    "a step; "
                    "'ddpcheck report' shows all\n",
                    writer.shown[i] - SHOWN_MOST, commands[i], SHOWN_MOST);
    for (int i = 0; i < export->not_checked_count; i++) {
        const struct not_checked *entry = &export->not_checked[i];
        char why[512];
        fprintf(export->out, "ddpcheck: not checked: %s: %s\n", entry->lack->codes,
                not_checked_text(entry, why, sizeof why));
    }
    return 0;
}
