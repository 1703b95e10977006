/* model_diagnosis.c: what stands above every view: the worst finding in words, or how the job goes.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "lib/finding/finding_site.h"
#include "lib/trace/site.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/operations.h"
#include "tui/view.h"
#include "tui/width.h"

enum {
    LINES_BRIEF = 3,
    LINES_LEAST = 6,
    LINES_MOST = 16,
    LINES_AROUND = 2, /* title and keys */
    LINES_TABLE = 4,  /* a blank one, titles, and two rows are worth their place */
    AROUND = 4,
    NARROW = 60,
    SIDES_SHOWN = 3
};

static int open_findings(const struct findings *findings, enum severity severity)
{
    int count = 0;
    for (int i = 0; i < findings->faults.count; i++) {
        const struct finding *finding = findings->faults.fault[i].finding;
        count += finding->state == FINDING_OPEN && finding->severity == severity;
    }
    return count;
}

/* "train.c:176: error DC201 and 2 more, for 12 s". */
static void say_headline(struct source *source, const struct findings *findings, int width,
                         struct text *text)
{
    const struct finding *worst = findings->faults.fault[0].finding;
    static const char cut_place[] = ".../";
    char duration[64], place[256] = "";
    uint64_t wait_ns = finding_wait_ns(worst, source->now_ns);
    int others = open_findings(findings, SEVERITY_ERROR) +
                 open_findings(findings, SEVERITY_WARNING) - 1;
    finding_location(source->trace, worst, width / 2, place, sizeof place);
    const char *shown = place;
    if (width < NARROW && !strncmp(place, cut_place, sizeof cut_place - 1))
        shown += sizeof cut_place - 1;
    text_add(text, "%s%s%s%s %s", shown, *place ? ": " : "",
             worst->certainty == POSSIBLE ? "possible " : "", severity_name(worst->severity),
             code_name(worst->code));
    if (others > 0)
        text_add(text, " and %d more", others);
    if (wait_ns)
        text_add(text, source->live || width < NARROW ? ", for %s" : ", for %s until the end",
                 moment_duration(wait_ns, duration, sizeof duration));
}

/* "no finding; 8 processes, 2 communicators, 1 behind, running"; or "no error, 1 note (key 2); ..."
 */
static int say_state(struct source *source, const struct findings *findings, struct text *text,
                     struct error *err)
{
    struct members members;
    if (members_load(&members, source, err) < 0)
        return -1;
    int behind = 0, notes = open_findings(findings, SEVERITY_NOTE);
    for (int i = 0; i < members.count; i++)
        behind += members.member[i].standing <= STANDS_BEHIND;
    int ranks = trace_process_count(source->trace);
    if (notes)
        text_add(text, "no error, %d note%s (key %d)", notes, notes == 1 ? "" : "s",
                 VIEW_FINDINGS + 1);
    else
        text_add(text, "no finding");
    text_add(text, "; %d process%s, %d communicator%s", ranks, ranks == 1 ? "" : "es",
             members.comms, members.comms == 1 ? "" : "s");
    if (behind && source->live)
        text_add(text, ", %d behind", behind);
    text_add(text, source->live ? ", running" : ", finished");
    members_free(&members);
    return 0;
}

static int lines_of(const char *text, int width)
{
    int lines = 0;
    for (; *text; lines++)
        width_wrap(text, width, &text);
    return lines;
}

/* What is wrong has to be read to its end: arguments of calls go first. */
static void shorten_to(char *text, int width, int most)
{
    if (lines_of(text, width) > most)
        operation_shorten(text);
    if (lines_of(text, width) > most)
        operation_shorten_more(text);
}

/* The length of the text up to `kept`, without a word that would be cut, if there is another one in
 * the last line, which starts at `begin`. */
static size_t whole_words(const char *text, size_t begin, size_t kept)
{
    size_t end = kept;
    if (text[end] && text[end] != ' ')
        while (end > begin && text[end - 1] != ' ')
            end--;
    while (end > begin && text[end - 1] == ' ')
        end--;
    return end > begin ? end : kept;
}

/* Adds the text, cut to `most` lines with "..." at its end where it is longer. */
static void add_lines(struct rows *rows, enum tone tone, const char *text, int width, int most)
{
    const char *next = text, *begin = text;
    char *cut = NULL;
    size_t bytes = 0;
    for (int line = 0; line < most && *next; line++) {
        begin = next;
        bytes = width_wrap(begin, width, &next);
    }
    if (!*next) {
        rows_paragraph(rows, tone, width, text);
        return;
    }
    size_t fits = width_fit(begin, width - 3), line = (size_t)(begin - text);
    size_t kept = whole_words(text, line, line + (bytes < fits ? bytes : fits));
    if (asprintf(&cut, "%.*s...", (int)kept, text) < 0) {
        rows->failed = true;
        return;
    }
    rows_paragraph(rows, tone, width, cut);
    free(cut);
}

/* Of a rank in no call of NCCL or CUDA: where its main thread was when the hang was noticed. Of the
 * threads of a process with several ranks it is not known whose they are. */
static void captured_where(struct source *source, struct finding_side *side)
{
    /* The literal 251 (notice_thread_stack) lets SQLite use the index over these rows alone. */
    static const char sql[] = "SELECT process, stack, flags FROM event WHERE api = 251 AND "
                              "w1 >> 32 & 1 AND process NOT IN (SELECT process FROM member_state "
                              "GROUP BY process, comm HAVING count(*) > 1) ORDER BY seq";
    if (side->process < 0)
        return;
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    while (cursor_next(&row, NULL) == 1)
        if (cursor_process(&row, 0) == side->process) {
            side->where_stack = (uint64_t)cursor_number(&row, 1);
            side->where_stack_is_address = cursor_number(&row, 2) & 1;
        }
}

/* "rank 3 is at train.c:42, in wait_for_losses()" or, of one that has ended, "was last at", for
 * sides that are elsewhere than the headline says. */
static void add_side_lines(struct source *source, const struct finding *finding, int width,
                           struct rows *rows)
{
    static const char *const verb[2][2] = {{"are", "is"}, {"were last", "was last"}};
    for (int i = 1; i < finding->sides && i < SIDES_SHOWN; i++) {
        struct finding_side side = finding->side[i]; /* what it owns stays the finding's */
        char ranks[256], place[512], text[1024];
        if (!side.where_stack && did_not_call(side.now.did))
            captured_where(source, &side);
        site_user_line(source->trace, side.process, side.where_stack, side.where_stack_is_address,
                       width / 2, place, sizeof place);
        bool one = rankset_count(&side.ranks) == 1;
        if (!*place || !side.where_stack)
            continue;
        snprintf(text, sizeof text, "%s %s at %s", rankset_words(&side.ranks, ranks, sizeof ranks),
                 verb[did_end(side.act.did)][one], place);
        rows_paragraph(rows, TONE_PLAIN, width, text);
    }
}

/* Cuts sentences at the end of the text until it fits. Returns its lines, which are more than
 * `most` where the first sentence is too long. */
static int keep_sentences(char *text, int width, int most)
{
    int lines;
    while ((lines = lines_of(text, width)) > most) {
        char *end = text + strlen(text) - 1, *last = NULL;
        for (char *c = text; c < end; c++)
            if (c[0] == '.' && c[1] == ' ')
                last = c + 1;
        if (!last)
            break;
        *last = '\0';
    }
    return lines;
}

/* What has to be read to its end where there is little room: more of the screen than half of it. */
static int answer_lines(const struct query *query, int needed)
{
    int usual = rows_clamp(query->height / 2, rows_clamp(query->height - AROUND, 1, LINES_LEAST),
                           LINES_MOST);
    int whole = rows_clamp(query->height - LINES_AROUND, 1, LINES_MOST);
    return rows_clamp(needed, usual, whole > usual ? whole : usual);
}

static void copy_lines(struct rows *to, const struct rows *from)
{
    for (int i = 0; i < from->lines; i++)
        rows_line(to, from->line[i].tone, "%s", from->line[i].text);
}

static bool have_last_lines(const struct rows *rows, const struct rows *end)
{
    int first = rows->lines - end->lines;
    bool equal = first >= 0;
    for (int i = 0; equal && i < end->lines; i++)
        equal = !strcmp(rows->line[first + i].text, end->line[i].text);
    return equal;
}

/* Where the answers fill the screen and some were cut, they follow in full for readers who scroll.
 */
static void add_rest(struct rows *rows, const struct rows *full, const struct query *query)
{
    bool has_room = rows->lines + LINES_AROUND + LINES_TABLE <= query->height;
    if (has_room || have_last_lines(rows, full))
        return;
    rows_line(rows, TONE_PLAIN, "%s", "");
    rows_line(rows, TONE_STRONG, "In full:");
    copy_lines(rows, full);
}

/* The four answers of the first screen: the user's line, which rank did what, where the others are,
 * and what to do. On a small screen calls are shortened, then the fix is left with its first
 * sentences, and the table has no room. */
static void add_answers(struct source *source, const struct finding *finding, const char *head,
                        const struct query *query, struct rows *rows)
{
    int width = query->width > AROUND ? query->width : AROUND;
    struct rows sides = {0}, full = {0};
    struct text text = {0};
    if (*finding->todo)
        text_add(&text, "Fix: %s", finding->todo);
    char *fix = text_take(&text), *what = strdup(finding->what);
    if (!fix || !what) {
        rows->failed = true;
        free(fix);
        free(what);
        return;
    }
    add_side_lines(source, finding, width, &sides);
    rows_paragraph(&full, finding_tone(finding), width, what);
    copy_lines(&full, &sides);
    rows_paragraph(&full, TONE_GOOD, width, fix);
    int head_lines = lines_of(head, width), fix_lines = lines_of(fix, width);
    int most = answer_lines(query, head_lines + lines_of(what, width) + fix_lines);
    shorten_to(what, width, most - head_lines - fix_lines);
    int what_lines = lines_of(what, width);
    fix_lines = keep_sentences(fix, width, most - head_lines - what_lines);
    int left =
        rows_clamp(most - head_lines - (fix_lines < most / 2 ? fix_lines : most / 2), 1, most);
    what_lines = rows_clamp(what_lines, 0, left);
    add_lines(rows, finding_tone(finding), head, width, most);
    add_lines(rows, finding_tone(finding), what, width, left);
    left = most - head_lines - what_lines;
    if (sides.lines + fix_lines <= left)
        copy_lines(rows, &sides);
    if (*fix)
        add_lines(rows, TONE_GOOD, fix, width, rows_clamp(left, 1, most));
    add_rest(rows, &full, query);
    free(fix);
    free(what);
    rows_free(&sides);
    rows_free(&full);
}

/* The headline and as much of the rest as there is room for above other views; on a narrow screen
 * without the end of the headline, how long it has lasted. */
static void add_brief(const struct finding *finding, const char *head, int width, int lines,
                      struct rows *rows)
{
    struct text text = {0};
    int kept = width < NARROW ? (int)strcspn(head, ",") : (int)strlen(head);
    text_add(&text, "%.*s: %s", kept, head, finding->what);
    char *said = text_take(&text);
    if (said)
        shorten_to(said, width, lines);
    if (said)
        add_lines(rows, finding_tone(finding), said, width, lines);
    rows->failed |= !said;
    free(said);
}

/* The job goes on, so its state comes first; users with a slow job look for this next. */
static void add_note(struct source *source, const struct findings *findings, int width,
                     struct rows *rows)
{
    struct text text = {0};
    say_headline(source, findings, width, &text);
    char *head = text_take(&text);
    if (head)
        add_brief(findings->faults.fault[0].finding, head, width,
                  width < NARROW ? 1 : LINES_BRIEF - 1, rows);
    rows->failed |= !head;
    free(head);
}

int model_diagnosis(struct source *source, const struct query *query, struct rows *rows,
                    struct error *err)
{
    struct findings findings;
    struct text text = {0};
    int width = query->width > AROUND ? query->width : AROUND, result = 0;
    if (tui_findings_load(&findings, source, err) < 0)
        return -1;
    const struct finding *worst = findings.faults.count ? findings.faults.fault[0].finding : NULL;
    bool is_open = worst && worst->state == FINDING_OPEN;
    bool serious = is_open && worst->severity != SEVERITY_NOTE;
    if (is_open) {
        char place[PATH_MAX];
        rows->finding = worst->id;
        finding_location(source->trace, worst, sizeof place, place, sizeof place);
        rows_set_place(rows, NULL, place);
    }
    if (serious)
        say_headline(source, &findings, width, &text);
    else
        result = say_state(source, &findings, &text, err);
    char *said = text_take(&text);
    if (said && result == 0 && !serious)
        rows_paragraph(rows, TONE_GOOD, width, said);
    else if (said && result == 0 && query->view == VIEW_NOW)
        add_answers(source, worst, said, query, rows);
    else if (said && result == 0)
        add_brief(worst, said, width, LINES_BRIEF, rows);
    if (result == 0 && is_open && !serious)
        add_note(source, &findings, width, rows);
    free(said);
    tui_findings_free(&findings);
    return result;
}
