/* model_findings.c: the list of findings; one finding with its sides beside each other; its long
 * text. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/analyzer.h"
#include "analyzer/version_facts.h"
#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "lib/finding/finding_site.h"
#include "lib/trace/site.h"
#include "tui/finding_advice.h"
#include "tui/findings.h"
#include "tui/view.h"
#include "tui/width.h"

enum { CELL_SIGN, CELL_CODE, CELL_RANKS, CELL_TIMES, CELL_WHEN, CELL_WHAT };
enum {
    RANKS_BYTES = 256,
    FRAMES_LEAST = 8,
    LINE_BYTES = 512,
    FIX_BYTES = 2048,
    MOVED_ID = 1 << 20,
    SIDE_LINES_MAX = 256,
    SIDE_LEAST = 36,
    SIDE_OTHERS = 8, /* ranks, call, phase, for, now (2), process, an empty one */
    GAP = 2
};

static const char *sign_of(const struct finding *finding, bool ascii)
{
    static const char *const signs[] = {"✗", "!", "i"}, *const ascii_signs[] = {"E", "!", "i"};
    if (finding->state == FINDING_RESOLVED)
        return ascii ? "ok" : "✓";
    return (ascii ? ascii_signs : signs)[finding->severity];
}

/* "2 errors, 1 warning, 3 resolved" */
static void add_counts(const struct findings *findings, struct rows *rows)
{
    enum { RESOLVED = SEVERITY_NOTE + 1, KINDS };
    int count[KINDS] = {0};
    struct text text = {0};
    for (int i = 0; i < findings->faults.count; i++) {
        const struct finding *finding = findings->faults.fault[i].finding;
        count[finding->state == FINDING_RESOLVED ? RESOLVED : (int)finding->severity]++;
    }
    for (int k = 0, said = 0; k < RESOLVED; k++)
        if (count[k])
            text_add(&text, "%s%d %s%s", said++ ? ", " : "", count[k],
                     severity_name((enum severity)k), count[k] > 1 ? "s" : "");
    if (count[RESOLVED])
        text_add(&text, "%s%d resolved", findings->faults.count > count[RESOLVED] ? ", " : "",
                 count[RESOLVED]);
    char *said = text_take(&text);
    if (said && *said)
        rows_line(rows, TONE_STRONG, "%s", said);
    free(said);
}

static int model_findings(struct source *source, struct query *query, struct rows *rows,
                          struct error *err)
{
    struct findings findings;
    char ranks[RANKS_BYTES], clock[64], place[PATH_MAX];
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    rows->empty = source->live ? "No finding so far." : "No finding.";
    add_counts(&findings, rows);
    rows_column(rows, "", 2, false);
    rows_column(rows, "code", 0, false);
    rows_column(rows, "ranks", 12, false);
    rows_column(rows, "times", 0, true);
    rows_column_is_minor(rows);
    rows_column(rows, "first", 12, false);
    rows_column_is_minor(rows);
    rows_column(rows, "what", 0, false);
    for (int i = 0; i < findings.faults.count; i++) {
        const struct fault_group *fault = &findings.faults.fault[i];
        const struct finding *finding = fault->finding;
        enum tone tone = finding_tone(finding);
        struct row *row = rows_add(rows, finding->id, 0);
        row_set(row, CELL_SIGN, tone, "%s", sign_of(finding, query->ascii));
        row_set(row, CELL_CODE, tone, "%s%s", code_name(finding->code),
                finding->certainty == POSSIBLE ? "?" : "");
        row_set(row, CELL_RANKS, TONE_PLAIN, "%s", finding_ranks(fault, ranks, sizeof ranks));
        row_set(row, CELL_TIMES, TONE_PLAIN, "%llu", (unsigned long long)fault->times);
        row_set(row, CELL_WHEN, TONE_PLAIN, "%s",
                moment_clock(finding->first_ns, source->now_ns, clock, sizeof clock));
        row_set(row, CELL_WHAT, TONE_PLAIN, "%s", finding->what);
        if (!row)
            continue;
        row->target = (struct target){.view = VIEW_FINDING, .finding = finding->id, .process = -1};
        finding_location(source->trace, finding, sizeof place, place, sizeof place);
        rows_set_place(rows, row, place);
    }
    tui_findings_free(&findings);
    return 0;
}

const struct view view_findings = {
    .name = "Findings",
    .about = "What was found, the worst first.",
    .load = model_findings,
    .key = {{"Enter", "the finding: both sides, stacks, the fix"},
            {"e", "what it means and how to fix it"}},
};

/* --- one finding --- */

/* A side as a column of lines. */
struct side_text {
    char line[SIDE_LINES_MAX][LINE_BYTES];
    enum tone tone[SIDE_LINES_MAX];
    int lines, width, frames; /* frames: of each stack, at most */
};

static void side_line(struct side_text *side, enum tone tone, const char *text)
{
    do {
        const char *begin = text;
        size_t bytes = width_wrap(begin, side->width, &text);
        if (side->lines == SIDE_LINES_MAX)
            return;
        snprintf(side->line[side->lines], LINE_BYTES, "%.*s", (int)bytes, begin);
        side->tone[side->lines++] = tone;
    } while (*text);
}

static void side_write_frames(struct source *source, const struct finding *finding, int side,
                              enum side_stack which, struct side_text *text)
{
    struct shown_frames frames;
    char function[sizeof frames.frame->function + 8], place[sizeof frames.frame->file];
    char line[LINE_BYTES];
    finding_side_frames(source->trace, finding, side, which, &frames);
    int first = site_first_shown(frames.shown, text->frames);
    int left_out = frames.count - text->frames;
    for (int i = first; i < frames.count && i < first + text->frames; i++) {
        const struct frame *frame = &frames.frame[i];
        frame_function(frame, function, sizeof function);
        int left = text->width - 4 - width_of(function);
        frame_place(frame, left > 12 ? left : 12, place, sizeof place);
        bool fits = width_of(function) + width_of(place) + 4 <= text->width;
        snprintf(line, sizeof line, fits ? "  %s  %s" : "  %s\n    %s", function, place);
        side_line(text, i > first ? TONE_FAINT : TONE_PLAIN, line);
    }
    if (left_out > 0) {
        snprintf(line, sizeof line, "  and %d more", left_out);
        side_line(text, TONE_FAINT, line);
    }
}

static void side_write(struct source *source, const struct finding *finding, int index,
                       struct side_text *text)
{
    const struct finding_side *side = &finding->side[index];
    char line[LINE_BYTES], duration[64], ranks[RANKS_BYTES];
    bool one = rankset_count(&side->ranks) == 1;
    side_line(text, TONE_STRONG, rankset_words(&side->ranks, ranks, sizeof ranks));
    side_line(text, TONE_STRONG, side->call);
    side_write_frames(source, finding, index, SIDE_STACK_ACT, text);
    if (*side->phase) {
        snprintf(line, sizeof line, "phase: %s", side->phase);
        side_line(text, TONE_PLAIN, line);
    }
    if (side->since_ns && source->now_ns > side->since_ns) {
        snprintf(line, sizeof line, "for %s",
                 moment_duration(source->now_ns - side->since_ns, duration, sizeof duration));
        side_line(text, TONE_PLAIN, line);
    }
    if (*side->where && strcmp(side->where, side->call)) {
        snprintf(line, sizeof line, "now %s", side->where);
        side_line(text, TONE_STRONG, line);
        if (side->where_stack != side->stack)
            side_write_frames(source, finding, index, SIDE_STACK_NOW, text);
    }
    if (one && side->process >= 0) {
        const struct process_info *info = trace_process(source->trace, side->process);
        snprintf(line, sizeof line, "process %d on %s", info->pid, info->host);
        if (info->pid > 0) /* imported, and not known */
            side_line(text, TONE_FAINT, line);
    }
}

/* Two sides beside each other where the width allows it. A side's two stacks and its other lines
 * fill what the paragraphs leave of the screen. */
static void add_side_rows(struct source *source, const struct finding *finding,
                          const struct query *query, bool is_low, struct rows *rows)
{
    struct side_text *text = calloc(2, sizeof *text);
    int width = query->width, frames = (query->height - rows->lines - SIDE_OTHERS) / 2;
    if (frames < FRAMES_LEAST)
        frames = FRAMES_LEAST;
    int abreast = width >= 2 * SIDE_LEAST + GAP && !is_low ? 2 : 1;
    rows_column(rows, "", 0, false);
    rows->column[0].least = abreast == 2 ? (width - GAP) / 2 : width;
    rows->column[0].most = rows->column[0].least;
    if (abreast == 2)
        rows_column(rows, "", 0, false);
    for (int i = 0; text && i < finding->sides; i += abreast) {
        int lines = 0;
        for (int k = 0; k < abreast; k++) {
            text[k] = (struct side_text){.width = abreast == 2 ? (width - GAP) / 2 : width,
                                         .frames = frames};
            if (i + k < finding->sides)
                side_write(source, finding, i + k, &text[k]);
            lines = text[k].lines > lines ? text[k].lines : lines;
        }
        for (int line = 0; line <= lines; line++) { /* one empty line below */
            struct row *row = rows_add(rows, (uint64_t)(i * SIDE_LINES_MAX + line), 0);
            for (int k = 0; k < abreast; k++) {
                bool there = line < text[k].lines;
                row_set(row, k, there ? text[k].tone[line] : TONE_PLAIN, "%s",
                        there ? text[k].line[line] : "");
            }
        }
    }
    rows->failed |= !text;
    free(text);
}

/* On a low screen what would leave no room for the table moves into it, where it can be scrolled.
 */
static void move_lines(struct rows *rows)
{
    for (int i = 0; i < rows->lines; i++) {
        row_set(rows_add(rows, MOVED_ID + (uint64_t)i, 0), 0, rows->line[i].tone, "%s",
                rows->line[i].text);
        free(rows->line[i].text);
    }
    rows->lines = 0;
}

static int model_finding(struct source *source, struct query *query, struct rows *rows,
                         struct error *err)
{
    struct findings findings;
    char times[128] = "", clock[64], last[64], ranks[RANKS_BYTES], fix[FIX_BYTES], head[LINE_BYTES];
    char odd[LINE_BYTES];
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    const struct fault_group *fault = tui_findings_get(&findings, query->finding);
    const struct finding *finding = fault ? fault->finding : NULL;
    rows->empty = "This finding is not there any more.";
    rows->text = true;
    if (finding) {
        const struct check *check = check_of(finding->code);
        finding_location(source->trace, finding, sizeof head, head, sizeof head);
        rows_set_place(rows, NULL, head);
        snprintf(head, sizeof head, "%s%s %s: %s",
                 finding->certainty == POSSIBLE ? "possible " : "",
                 severity_name(finding->severity), code_name(finding->code),
                 check ? check->title : "a check of another version");
        rows_paragraph(rows, finding_tone(finding), query->width, head);
        rows_paragraph(rows, TONE_PLAIN, query->width, finding->what);
        if (fault->others)
            rows_line(rows, TONE_PLAIN, "the same fault: %d more finding%s, of %s%s%s",
                      fault->others, fault->others == 1 ? "" : "s",
                      rankset_words(&fault->ranks, ranks, sizeof ranks),
                      *fault_odd_words(fault, odd, sizeof odd) ? ": " : "", odd);
        if (fault->times > 1)
            snprintf(times, sizeof times, "seen %llu times, from %s to %s",
                     (unsigned long long)fault->times,
                     moment_clock(finding->first_ns, source->now_ns, clock, sizeof clock),
                     moment_clock(fault->last_ns, source->now_ns, last, sizeof last));
        if (*times)
            rows_line(rows, TONE_FAINT, "%s", times);
        snprintf(fix, sizeof fix, "Fix: %s", finding->todo);
        rows_paragraph(rows, TONE_GOOD, query->width, fix);
        finding_advice(source, finding, query->width, rows);
        rows_line(rows, TONE_PLAIN, "%s", "");
        bool is_low = query->height > 0 && rows->lines > query->height * 2 / 3;
        if (is_low)
            move_lines(rows);
        add_side_rows(source, finding, query, is_low, rows);
    }
    tui_findings_free(&findings);
    return 0;
}

const struct view view_finding = {
    .name = "Finding",
    .about = "One finding: what each side did, side by side.",
    .load = model_finding,
    .key = {{"e", "what it means and how to fix it"}, {"Esc", "back"}},
};

/* --- what a finding means --- */

static void add_text(struct rows *rows, enum tone tone, int width, const char *text)
{
    const char *next = text;
    while (*next) {
        const char *begin = next;
        size_t bytes = width_wrap(begin, width > 1 ? width : 1, &next);
        row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, tone, "%.*s", (int)bytes, begin);
    }
}

static void add_title(struct rows *rows, const char *title)
{
    row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, TONE_PLAIN, "%s", "");
    row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, TONE_STRONG, "%s", title);
}

static void add_listing(struct rows *rows, const char *title, const char *text)
{
    if (!text || !*text)
        return;
    add_title(rows, title);
    for (const char *line = text; *line;) {
        size_t bytes = strcspn(line, "\n");
        row_set(rows_add(rows, (uint64_t)rows->count, 0), 0, TONE_PLAIN, "    %.*s", (int)bytes,
                line);
        line += bytes + (line[bytes] == '\n');
    }
}

static void add_causes(struct rows *rows, int width, const struct cause *cause)
{
    if (!cause)
        return;
    add_title(rows, "Usual causes, the most common first");
    for (; cause->what; cause++) {
        add_text(rows, TONE_PLAIN, width, cause->what);
        add_text(rows, TONE_FAINT, width, cause->look);
    }
}

static void add_version_facts(struct rows *rows, int width, enum code code)
{
    char range[VERSION_RANGE_BYTES], text[512];
    const struct version_fact *fact = version_fact_of_code(code, NULL);
    if (!fact)
        return;
    add_title(rows, "By version");
    for (; fact; fact = version_fact_of_code(code, fact)) {
        snprintf(text, sizeof text, "%s: %s.", version_fact_range(fact, range, sizeof range),
                 fact->words);
        add_text(rows, TONE_PLAIN, width, text);
    }
}

static int model_explain(struct source *source, struct query *query, struct rows *rows,
                         struct error *err)
{
    struct findings findings;
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    const struct fault_group *fault = tui_findings_get(&findings, query->finding);
    const struct check *check = fault ? check_of(fault->finding->code) : NULL;
    rows->empty = "No text about it in this version.";
    rows->text = true;
    if (check) {
        char title[256];
        snprintf(title, sizeof title, "%s: %s", code_name(check->code), check->title);
        rows_paragraph(rows, TONE_STRONG, query->width, title);
        rows_line(rows, TONE_PLAIN, "%s", "");
        rows_column(rows, "", 0, false);
        add_text(rows, TONE_PLAIN, query->width, check->text);
        add_version_facts(rows, query->width, check->code);
        add_causes(rows, query->width, check->causes);
        add_listing(rows, "Minimal reproducer", check->example);
        add_listing(rows, "Fix (C/CUDA)", check->fix_c);
        add_listing(rows, "Fix (PyTorch)", check->fix_torch);
    }
    tui_findings_free(&findings);
    return 0;
}

const struct view view_explain = {
    .name = "Explain",
    .about = "What a finding means and how to fix it.",
    .load = model_explain,
    .key = {{"Esc", "back"}},
};
