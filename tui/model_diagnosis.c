/* model_diagnosis.c: what stands above every view: the worst finding in words, or how the job goes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyzer.h"
#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/view.h"
#include "tui/width.h"

enum { LINES_MOST = 3 };

/* When the ranks that wait began to: the earliest of the sides. */
static uint64_t since(const struct tui_finding *finding)
{
    uint64_t earliest = 0;
    for (int i = 0; i < finding->sides; i++)
        if (finding->side[i].since_ns && (!earliest || finding->side[i].since_ns < earliest))
            earliest = finding->side[i].since_ns;
    return earliest ? earliest : finding->first_ns;
}

static int open_findings(const struct findings *findings, const char *severity)
{
    int count = 0;
    for (int i = 0; i < findings->count; i++)
        count += strcmp(findings->finding[i].state, "resolved") &&
                 !strcmp(findings->finding[i].severity, severity);
    return count;
}

/* It goes on until somebody ends it: how long it has lasted is of interest. */
static bool is_hang(const struct tui_finding *finding)
{
    const struct check *check = check_find(finding->code);
    return check && check->family == FAMILY_HANG;
}

static void say_finding(const struct source *source, const struct findings *findings,
                        struct text *text)
{
    const struct tui_finding *worst = &findings->finding[0];
    char duration[64];
    uint64_t since_ns = since(worst);
    int others = open_findings(findings, "error") + open_findings(findings, "warning") - 1;
    bool lasts = is_hang(worst) && since_ns && source->now_ns > since_ns;
    text_add(text, "%s%s %s", !strcmp(worst->certainty, "possible") ? "possible " : "",
             worst->severity, worst->code);
    if (others > 0)
        text_add(text, " and %d more", others);
    if (lasts)
        text_add(text, source->live ? ", since %s" : ", for %s until the end",
                 moment_duration(source->now_ns - since_ns, duration, sizeof duration));
    text_add(text, ": %s", worst->what);
}

/* "No finding; 8 ranks on 2 communicators, 1 behind." */
static int say_state(struct source *source, struct text *text, struct error *err)
{
    struct members members;
    if (members_load(&members, source, err) < 0)
        return -1;
    int behind = 0;
    for (int i = 0; i < members.count; i++)
        behind += members.member[i].standing <= STANDS_BEHIND;
    int ranks = trace_process_count(source->trace);
    text_add(text, "no finding; %d process%s, %d communicator%s", ranks, ranks == 1 ? "" : "es",
             members.comms, members.comms == 1 ? "" : "s");
    if (behind && source->live)
        text_add(text, ", %d behind", behind);
    text_add(text, source->live ? ", running" : ", finished");
    members_free(&members);
    return 0;
}

/* The text if it takes no more than LINES_MOST lines, else as much as fits, with "..." at its end.
 * The rest is in the finding itself. The caller's; NULL when memory is short. */
static char *cut_to(const char *text, int width)
{
    const char *next = text, *begin = text;
    size_t bytes = 0;
    for (int line = 0; line < LINES_MOST && *next; line++) {
        begin = next;
        bytes = width_wrap(begin, width > 1 ? width : 1, &next);
    }
    if (!*next)
        return strdup(text);
    size_t fits = width_fit(begin, width - 3);
    char *cut = NULL;
    if (asprintf(&cut, "%.*s...", (int)((size_t)(begin - text) + (bytes < fits ? bytes : fits)),
                 text) < 0)
        return NULL;
    return cut;
}

int model_diagnosis(struct source *source, struct rows *rows, int width, struct error *err)
{
    struct findings findings;
    struct text text = {0};
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    bool serious = findings.count && strcmp(findings.finding[0].state, "resolved") &&
                   strcmp(findings.finding[0].severity, "note");
    enum tone tone = serious ? finding_tone(&findings.finding[0]) : TONE_GOOD;
    int result = 0;
    if (serious)
        say_finding(source, &findings, &text);
    else
        result = say_state(source, &text, err);
    tui_findings_free(&findings);
    char *said = text_take(&text);
    if (said && result == 0) {
        char *cut = cut_to(said, width);
        rows_paragraph(rows, tone, width, cut ? cut : said);
        free(cut);
    }
    free(said);
    return result;
}
