/* report_text.c: prints a report as text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/moment.h"
#include "cmd/report/not_checked.h"
#include "cmd/report/report_print.h"
#include "lib/trace/site.h"

enum {
    LABEL_COLUMN = 4,
    VALUE_COLUMN_LEAST = 14,
    VALUE_COLUMN_MOST = 26, /* of what is said about a side */
    FRAMES_SHOWN = 5,
    RANKS_BYTES = 256,
    TIME_BYTES = 64
};

struct text_writer {
    struct report *report;
    struct page *page;
    int value_column; /* of the finding at hand */
    const char *code; /* of the last finding; its `todo` is still to be said */
    char *todo;
};

static const struct {
    const char *title, *one, *many;
    enum style style;
} severities[] = {
    [SEVERITY_ERROR] = {"ERROR", "error", "errors", STYLE_ERROR},
    [SEVERITY_WARNING] = {"WARNING", "warning", "warnings", STYLE_WARNING},
    [SEVERITY_NOTE] = {"NOTE", "note", "notes", STYLE_NOTE},
};

/* "1 error, 2 notes", each in its colour. */
static void print_verdict(const struct report *report, struct page *page)
{
    bool any = false;
    for (int i = SEVERITY_ERROR; i <= SEVERITY_NOTE; i++) {
        if (report->count[i] == 0)
            continue;
        if (any)
            page_text(page, STYLE_PLAIN, ", ");
        page_format(page, severities[i].style, "%d %s", report->count[i],
                    plural(report->count[i], severities[i].one, severities[i].many));
        any = true;
    }
    if (any)
        return;
    if (report->events == 0 && report->damage.text[0])
        page_words(page, STYLE_WARNING, "Nothing could be read");
    else if (report->events == 0)
        page_words(page, STYLE_WARNING, "Nothing was recorded");
    else if (report->damage.text[0])
        page_words(page, STYLE_WARNING, "No finding in the part that could be read");
    else if (report_incomplete(report))
        page_words(page, STYLE_WARNING, "No finding so far");
    else if (report->choice->suppressed || report->choice->known_again)
        page_words(page, STYLE_GOOD, "No new findings");
    else
        page_words(page, STYLE_GOOD, "No finding");
}

static void print_head_text(const struct report *report, struct page *page)
{
    char duration[TIME_BYTES], date[TIME_BYTES];
    page->indent = 0;
    print_verdict(report, page);
    for (int i = 0; i < report->sources; i++)
        page_format(page, STYLE_PLAIN, "%s%s", i ? ", " : " in ", report->source[i].path);
    page_text(page, STYLE_PLAIN, ".");
    page_line(page);
    if (report->events == 0 && report->damage.text[0]) {
        page_words(page, STYLE_PLAIN,
                   "The file is damaged where its records begin; 'sqlite3 FILE .recover' may bring "
                   "some back.");
    } else if (report->events == 0) {
        page_words(page, STYLE_PLAIN,
                   "No process of the job made an NCCL call that ddpcheck can see; "
                   "'ddpcheck doctor -- PROGRAM' shows why.");
    } else {
        page_format(page, STYLE_PLAIN, "%d %s, watched for %s until %s.",
                    trace_process_count(report->trace),
                    plural(trace_process_count(report->trace), "process", "processes"),
                    moment_duration(report->end_ns - report->begin_ns, duration, sizeof duration),
                    moment_date(report->end_ns, date, sizeof date));
    }
    if (report->collecting)
        page_line(page),
            page_words(page, STYLE_STRONG, "The job is still running; this is a snapshot.");
    page_gap(page);
}

/* "   since     " */
static void print_label(const struct text_writer *writer, const char *label)
{
    struct page *page = writer->page;
    page_line(page);
    page_column(page, LABEL_COLUMN);
    page_text(page, STYLE_FAINT, label);
    page_column(page, writer->value_column);
    page->indent = writer->value_column;
}

static void print_labeled_frames(const struct text_writer *writer, const char *label, int process,
                                 uint64_t stack, bool is_address)
{
    struct frame frame[SITE_FRAMES_MAX];
    struct page *page = writer->page;
    int count = site_frames(writer->report->trace, process, stack, is_address, frame);
    int shown = count > FRAMES_SHOWN + 1 ? FRAMES_SHOWN : count;
    report_print_frames(page, label, (const int[]){LABEL_COLUMN, writer->value_column}, frame,
                        shown);
    page->indent = writer->value_column;
    if (count > shown) {
        print_label(writer, "");
        page_format(page, STYLE_FAINT, "and %d more", count - shown);
    }
}

static void print_since(const struct text_writer *writer, uint64_t since_ns)
{
    char clock[TIME_BYTES], duration[TIME_BYTES];
    uint64_t end_ns = writer->report->end_ns;
    print_label(writer, "since");
    page_words(writer->page, STYLE_PLAIN, moment_clock(since_ns, end_ns, clock, sizeof clock));
    if (since_ns <= end_ns)
        page_format(writer->page, STYLE_PLAIN, ", %s %s",
                    moment_duration(end_ns - since_ns, duration, sizeof duration),
                    writer->report->collecting ? "ago" : "before the end");
}

/* A rank alone is named with its process; of several, one process says nothing about the others. */
static void print_side_process(const struct text_writer *writer, const struct finding_side *side)
{
    if (rankset_count(&side->ranks) != 1 || side->process < 0)
        return;
    const struct process_info *info = trace_process(writer->report->trace, side->process);
    if (info->pid <= 0)
        return; /* imported, and not known */
    print_label(writer, "process");
    page_format(writer->page, STYLE_PLAIN, *info->host ? "%d on %s" : "%d", info->pid, info->host);
}

/* "ranks 0-2". Returns text. */
static char *ranks_label(const struct finding_side *side, char *text, size_t bytes)
{
    char ranks[RANKS_BYTES];
    snprintf(text, bytes, "%s %s", rankset_count(&side->ranks) == 1 ? "rank" : "ranks",
             rankset_text(&side->ranks, ranks, sizeof ranks));
    return text;
}

/* Whether `where` says something that the call did not. */
static bool has_where(const struct finding_side *side)
{
    return *side->where && strcmp(side->where, side->call);
}

static void print_side_where(const struct text_writer *writer, const struct finding_side *side)
{
    if (!has_where(side))
        return;
    print_label(writer, "now");
    page_words(writer->page, STYLE_PLAIN, side->where);
    bool is_address;
    uint64_t stack = stack_of_where(writer->report, side, &is_address);
    print_labeled_frames(writer, "at", side->process, stack, is_address);
}

static void print_finding_side(const struct text_writer *writer, const struct finding_side *side)
{
    struct page *page = writer->page;
    char label[RANKS_BYTES + 8];
    page_line(page);
    page->indent = writer->value_column;
    page_column(page, 2);
    page_text(page, STYLE_STRONG, ranks_label(side, label, sizeof label));
    if (page->column > writer->value_column - 2)
        page_line(page);
    page_column(page, writer->value_column);
    page_words(page, STYLE_STRONG, side->call);
    if (side->stack != side->where_stack || !has_where(side))
        print_labeled_frames(writer, "at", side->process, side->stack, side->stack_is_address);
    if (*side->phase) {
        print_label(writer, "phase");
        page_words(page, STYLE_PLAIN, side->phase);
    }
    if (side->since_ns)
        print_since(writer, side->since_ns);
    print_side_where(writer, side);
    print_side_process(writer, side);
    page_gap(page);
}

static int value_column(const struct finding *finding)
{
    char label[RANKS_BYTES + 8];
    int column = VALUE_COLUMN_LEAST;
    for (int i = 0; i < finding->sides; i++) {
        int width = text_width(ranks_label(&finding->side[i], label, sizeof label)) + 4;
        column = width > column && width <= VALUE_COLUMN_MOST ? width : column;
    }
    return column;
}

static void print_times(const struct text_writer *writer, const struct finding *finding)
{
    char first[TIME_BYTES], last[TIME_BYTES];
    uint64_t end_ns = writer->report->end_ns;
    if (finding->times < 2)
        return;
    if (!finding->first_ns) {
        page_format(writer->page, STYLE_FAINT, " Seen %" PRIu64 " times.", finding->times);
        return;
    }
    page_format(writer->page, STYLE_FAINT, " Seen %" PRIu64 " times, from %s to %s.",
                finding->times, moment_clock(finding->first_ns, end_ns, first, sizeof first),
                moment_clock(finding->last_ns, end_ns, last, sizeof last));
}

/* What to do is said once for findings of one kind that follow each other. */
static void print_todo(struct text_writer *writer)
{
    struct page *page = writer->page;
    if (!writer->code)
        return;
    page->indent = 9;
    page_column(page, 2);
    page_text(page, STYLE_GOOD, "To do: ");
    page_sentence(page, STYLE_PLAIN, writer->todo ? writer->todo : "");
    page_line(page);
    page_column(page, 2);
    page_text(page, STYLE_FAINT, "More:  ");
    page_format(page, STYLE_PLAIN, "ddpcheck explain %s", writer->code);
    page_gap(page);
    free(writer->todo);
    writer->todo = NULL;
    writer->code = NULL;
}

static void print_finding_text(void *context, const struct finding *finding)
{
    struct text_writer *writer = context;
    struct page *page = writer->page;
    if (writer->code && (strcmp(writer->code, finding->code) || !writer->todo ||
                         strcmp(writer->todo, finding->todo)))
        print_todo(writer);
    writer->value_column = value_column(finding);
    const struct check *check = check_find(finding->code);
    page->indent = 2;
    page_column(page, 2);
    page_format(page, severities[finding->severity].style, "%s%s %s",
                finding->certainty == POSSIBLE ? "POSSIBLE " : "",
                severities[finding->severity].title, finding->code);
    page_format(page, STYLE_STRONG, ": %s", check ? check->title : "a check of another version");
    page_line(page);
    page_sentence(page, STYLE_PLAIN, finding->what);
    print_times(writer, finding);
    page_gap(page);
    for (int i = 0; i < finding->sides; i++)
        print_finding_side(writer, &finding->side[i]);
    free(writer->todo);
    writer->code = finding->code;
    writer->todo = strdup(finding->todo);
}

static void print_resolved(void *context, const struct finding *finding)
{
    const struct text_writer *writer = context;
    struct page *page = writer->page;
    page->indent = 9;
    page_column(page, 2);
    page_text(page, STYLE_STRONG, finding->code);
    page_column(page, 9);
    page_sentence(page, STYLE_PLAIN, finding->what);
    page_line(page);
}

/* "2 findings suppressed (ci.supp:3, ci.supp:7)." */
static void print_suppressed(const struct report *report, struct page *page)
{
    const struct suppressions *file = &report->choice->suppressions;
    page_format(page, STYLE_PLAIN, "%d %s suppressed", report->choice->suppressed,
                plural(report->choice->suppressed, "finding", "findings"));
    bool any = false;
    for (int i = 0; i < file->count; i++) {
        if (!file->entry[i].used)
            continue;
        page_format(page, STYLE_PLAIN, "%s%s:%d", any ? ", " : " (", file->path,
                    file->entry[i].line);
        any = true;
    }
    page_text(page, STYLE_PLAIN, ").");
    page_line(page);
}

static void print_unused(const struct suppressions *file, struct page *page)
{
    for (int i = 0; i < file->count; i++) {
        if (file->entry[i].used)
            continue;
        page_column(page, 2);
        page_format(page, STYLE_WARNING, "%s:%d suppresses nothing: %s", file->path,
                    file->entry[i].line, file->entry[i].text);
        page_line(page);
    }
}

/* The findings that the user chose to hide. */
static void print_hidden(const struct report *report, struct page *page)
{
    const struct choice *choice = report->choice;
    if (!choice->suppressions.count && !choice->options.baseline)
        return;
    page->indent = 0;
    page_words(page, STYLE_STRONG, "Hidden");
    page_line(page);
    page->indent = 4;
    page_column(page, 2);
    if (choice->suppressions.count)
        print_suppressed(report, page);
    print_unused(&choice->suppressions, page);
    if (choice->options.baseline) {
        int gone = choice_gone(choice);
        page_column(page, 2);
        page_format(page, STYLE_PLAIN, "%d %s in the baseline %s", choice->known_again,
                    plural(choice->known_again, "finding is", "findings are"),
                    choice->options.baseline);
        if (gone)
            page_format(page, STYLE_GOOD, "; %d of it %s not there any more", gone,
                        plural(gone, "is", "are"));
        page_text(page, STYLE_PLAIN, ".");
        page_line(page);
    }
    page_gap(page);
}

/* What the source of imported ranks can't show is not fine: it is not known. */
static void print_not_checked_text(const struct report *report, struct page *page)
{
    struct not_checked *list;
    char text[2 * RANKS_BYTES];
    int count = not_checked_find(report->trace, &list);
    if (count <= 0)
        return;
    page->indent = 0;
    page_words(page, STYLE_STRONG, "Not checked");
    page_line(page);
    for (int i = 0; i < count; i++) {
        page->indent = 6;
        page_column(page, 2);
        page_format(page, STYLE_STRONG, "%s", list[i].lack->codes);
        page_format(page, STYLE_PLAIN, ": %s", not_checked_text(&list[i], text, sizeof text));
        page_line(page);
    }
    not_checked_free(list, count);
    page_gap(page);
}

static void print_source(const struct report_source *source, bool damaged, struct page *page)
{
    page->indent = 4;
    page_column(page, 2);
    page_format(page, STYLE_PLAIN, "%s: %d %s%s%s, %" PRIu64 " events,", source->path,
                source->processes, plural(source->processes, "process", "processes"),
                *source->hosts ? " on " : "", source->hosts, source->events);
    if (source->complete)
        page_words(page, STYLE_PLAIN, " complete");
    else if (damaged)
        page_words(page, STYLE_WARNING, " damaged");
    else if (source->collecting)
        page_words(page, STYLE_STRONG, " still being written");
    else
        page_words(page, STYLE_WARNING,
                   " without its end: the collector was stopped; 'ddpcheck collect' on that "
                   "directory, on that host, stores what the job's processes recorded since");
    page_line(page);
}

static void print_lost(const struct report *report, struct page *page)
{
    struct rankset ranks = {0};
    char text[RANKS_BYTES];
    for (int i = 0; i < trace_process_count(report->trace); i++)
        if (report->lost[i] && trace_process(report->trace, i)->rank >= 0)
            rankset_add(&ranks, trace_process(report->trace, i)->rank);
    page->indent = 4;
    page_column(page, 2);
    page_format(page, STYLE_WARNING, "%" PRIu64 " %s lost", report->lost_total,
                plural(report->lost_total, "record was", "records were"));
    if (rankset_count(&ranks))
        page_format(page, STYLE_PLAIN, " by %s %s", rankset_count(&ranks) == 1 ? "rank" : "ranks",
                    rankset_text(&ranks, text, sizeof text));
    page_text(page, STYLE_PLAIN, ".");
    page_line(page);
    rankset_free(&ranks);
}

static void print_trace(const struct report *report, struct page *page)
{
    page->indent = 0;
    page_words(page, STYLE_STRONG, "The trace");
    page_line(page);
    for (int i = 0; i < report->sources; i++)
        print_source(&report->source[i], report->damage.text[0], page);
    if (report->lost_total)
        print_lost(report, page);
    page->indent = 4;
    if (report->unseen) {
        page_column(page, 2);
        page_format(
            page, STYLE_WARNING, "%d %s no trace.", report->unseen,
            plural(report->unseen, "rank of a communicator left", "ranks of communicators left"));
        page_line(page);
    }
    if (report->skipped) {
        page_column(page, 2);
        page_format(page, STYLE_WARNING,
                    "%" PRIu64 " %s no sense and %s left out: the trace is damaged.",
                    report->skipped, plural(report->skipped, "record made", "records made"),
                    plural(report->skipped, "was", "were"));
        page_line(page);
    }
}

void report_print_text(struct report *report, struct page *page, bool all_ranks)
{
    struct text_writer writer = {.report = report, .page = page};
    print_head_text(report, page);
    report_visit_findings(report, FINDING_OPEN, print_finding_text, &writer);
    print_todo(&writer);
    if (report->resolved) {
        page->indent = 0;
        page_words(page, STYLE_STRONG, "The job got over");
        page_line(page);
        report_visit_findings(report, FINDING_RESOLVED, print_resolved, &writer);
        page_gap(page);
    }
    print_hidden(report, page);
    print_not_checked_text(report, page);
    report_print_stacks(report, page, all_ranks);
    report_print_members(report, page, all_ranks);
    print_trace(report, page);
}
