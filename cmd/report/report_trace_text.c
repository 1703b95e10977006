/* report_trace_text.c: prints what a report does not show, and what its trace is worth. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/report/not_checked.h"
#include "cmd/report/report_by_host.h"
#include "lib/base/moment.h"
#include "lib/base/name_ranges.h"
#include "cmd/report/report_print.h"

enum { RANKS_BYTES = 256, WHY_BYTES = 2048 };

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

static void print_unchecked(struct page *page, const char *codes, const char *why)
{
    page->indent = 6;
    page_column(page, 2);
    page_format(page, STYLE_STRONG, "%s:", codes);
    page_format(page, STYLE_PLAIN, " %s", why);
    page_line(page);
}

/* What one source lacks of the same ranks, as one list; a log lacks so much that -v lists it. */
static void print_unchecked_source(struct page *page, const struct not_checked *list, int count)
{
    struct text codes = {0}, what = {0};
    char text[WHY_BYTES];
    not_checked_codes(&codes, list, count);
    if (list->is_text && !codes.failed) {
        snprintf(text, sizeof text, "%s says too little for them (-v: what is missing)",
                 list->title);
        print_unchecked(page, codes.data, text);
        text_free(&codes);
        return;
    }
    for (int i = 0; i < count; i++)
        text_add(&what, "%s%s", i ? ", " : "", list[i].lack->what);
    if (!codes.failed && !what.failed) {
        const struct lack_text all = {.what = what.data, .codes = codes.data};
        struct not_checked entry = *list;
        entry.lack = &all;
        print_unchecked(page, codes.data, not_checked_text(&entry, text, sizeof text));
    }
    text_free(&codes);
    text_free(&what);
}

/* What the source of imported ranks can't show is not fine: it is not known. */
static void print_not_checked_text(const struct report *report, struct page *page, bool verbose)
{
    struct not_checked *list;
    char text[2 * RANKS_BYTES];
    int count = not_checked_find(report->trace, &list), alike;
    if (count <= 0 && !report->is_by_host)
        return;
    page->indent = 0;
    page_words(page, STYLE_STRONG, "Not checked");
    page_line(page);
    for (int i = 0; i < count; i += alike) {
        alike = verbose ? 1 : not_checked_alike(list + i, count - i);
        if (alike > 1)
            print_unchecked_source(page, list + i, alike);
        else
            print_unchecked(page, list[i].lack->codes,
                            not_checked_text(&list[i], text, sizeof text));
    }
    if (report->is_by_host)
        print_unchecked(page, by_host_unchecked, by_host_why);
    not_checked_free(list, count > 0 ? count : 0);
    page_gap(page);
}

enum source_state {
    SOURCE_COMPLETE,
    SOURCE_DAMAGED,
    SOURCE_WRITTEN,
    SOURCE_STOPPED,
    SOURCE_STATES
};

static enum source_state state_of(const struct report *report, const struct report_source *source)
{
    if (source->complete)
        return SOURCE_COMPLETE;
    if (report->damage.text[0])
        return SOURCE_DAMAGED;
    return source->collecting ? SOURCE_WRITTEN : SOURCE_STOPPED;
}

static void print_source_state(enum source_state state, struct page *page)
{
    static const struct {
        enum style style;
        const char *words;
    } states[] = {
        [SOURCE_COMPLETE] = {STYLE_PLAIN, " complete"},
        [SOURCE_DAMAGED] = {STYLE_WARNING, " damaged"},
        [SOURCE_WRITTEN] = {STYLE_STRONG, " still being written"},
        [SOURCE_STOPPED] =
            {STYLE_WARNING,
             " without its end: the collector was stopped; 'ddpcheck collect' on that "
             "directory, on that host, stores what the job's processes recorded since"},
    };
    page_words(page, states[state].style, states[state].words);
    page_line(page);
}

static void print_source(const struct report *report, const struct report_source *source,
                         struct page *page)
{
    page->indent = 4;
    page_column(page, 2);
    page_format(page, STYLE_PLAIN, "%s: %d %s%s%s, %" PRIu64 " events,", source->path,
                source->processes, plural(source->processes, "process", "processes"),
                *source->hosts ? " on " : "", source->host_ranges, source->events);
    if (!source->unrecorded) {
        print_source_state(state_of(report, source), page);
        return;
    }
    page_format(page, STYLE_WARNING,
                " without %d %s that could not be recorded, for lack of file descriptors "
                "(ulimit -n), memory or space",
                source->unrecorded, plural(source->unrecorded, "process", "processes"));
    page_line(page);
}

static bool is_of_state(const struct report *report, const struct report_source *source,
                        enum source_state state)
{
    return !source->unrecorded && state_of(report, source) == state;
}

/* One line for all databases in the same state. */
static void print_sources_of_state(const struct report *report, enum source_state state,
                                   struct page *page)
{
    const char **name = calloc((size_t)report->sources + 1, sizeof *name);
    int count = 0, processes = 0;
    uint64_t events = 0;
    for (int i = 0; name && i < report->sources; i++)
        if (is_of_state(report, &report->source[i], state)) {
            name[count++] = report->source[i].path;
            processes += report->source[i].processes;
            events += report->source[i].events;
        }
    char *names = count ? name_ranges(name, names_sort(name, count)) : NULL;
    if (names) {
        page->indent = 4;
        page_column(page, 2);
        page_format(page, STYLE_PLAIN, "%s: %d %s, %d %s, %" PRIu64 " events,%s", names, count,
                    plural(count, "database", "databases"), processes,
                    plural(processes, "process", "processes"), events, count > 1 ? " each" : "");
        print_source_state(state, page);
    }
    free(names);
    free(name);
}

static void print_sources(const struct report *report, struct page *page)
{
    bool has_many = report->sources > SOURCES_NAMED_MAX;
    for (int state = 0; has_many && state < SOURCE_STATES; state++)
        print_sources_of_state(report, (enum source_state)state, page);
    for (int i = 0; i < report->sources; i++)
        if (!has_many || report->source[i].unrecorded)
            print_source(report, &report->source[i], page);
}

static void print_clock(void *context, const struct trace_clock *clock)
{
    struct page *page = context;
    page->indent = 4;
    page_column(page, 2);
    page_format(page, STYLE_WARNING, "the clock of %s was %.1f s %s %s", clock->host,
                fabs((double)clock->offset_ns / 1e9), clock->offset_ns < 0 ? "ahead of" : "behind",
                clock->is_by_hub ? "the hub's" : "that of other hosts");
    page_format(page, STYLE_PLAIN, "; its times are corrected by that.");
    page_line(page);
}

static void print_lost(const struct report *report, struct page *page)
{
    struct rankset ranks = {0};
    char text[RANKS_BYTES];
    for (int i = 0; i < trace_process_count(report->trace); i++)
        if (report->lost[i] && report->rank[i] >= 0)
            rankset_add(&ranks, report->rank[i]);
    page->indent = 4;
    page_column(page, 2);
    page_format(page, STYLE_WARNING, "%" PRIu64 " %s lost", report->lost_total,
                plural(report->lost_total, "record was", "records were"));
    if (rankset_count(&ranks))
        page_format(page, STYLE_PLAIN, " by %s", rankset_words(&ranks, text, sizeof text));
    page_text(page, STYLE_PLAIN, ".");
    page_line(page);
    rankset_free(&ranks);
}

static const char *dropped_kinds(const struct trace_dropped *dropped)
{
    if (!dropped->calls)
        return "copies, kernels and ranges";
    return dropped->calls == dropped->records ? "finished calls"
                                              : "copies, kernels, ranges and finished calls";
}

static void print_dropped(const struct report *report, struct page *page)
{
    char until[32];
    uint64_t records = report->dropped.records;
    page->indent = 4;
    page_column(page, 2);
    page_format(page, STYLE_WARNING, "Not checked again before %s:",
                moment_clock(report->dropped.until_ns, report->end_ns, until, sizeof until));
    page_format(page, STYLE_PLAIN,
                " %" PRIu64 " %s of %s %s dropped (--keep). What was found "
                "while they were recorded is reported.",
                records, plural(records, "record", "records"), dropped_kinds(&report->dropped),
                plural(records, "was", "were"));
    page_line(page);
}

void report_print_trace(const struct report *report, struct page *page)
{
    page->indent = 0;
    page_words(page, STYLE_STRONG, "The trace");
    page_line(page);
    print_sources(report, page);
    trace_visit_clocks(report->trace, print_clock, page);
    if (report->lost_total)
        print_lost(report, page);
    if (report->dropped.records)
        print_dropped(report, page);
    page->indent = 4;
    if (report->unseen) {
        page_column(page, 2);
        page_format(page, STYLE_WARNING, "No NCCL call of %d %s was recorded.", report->unseen,
                    plural(report->unseen, "rank of a communicator", "ranks of communicators"));
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

void report_print_unshown(const struct report *report, struct page *page, bool verbose)
{
    print_hidden(report, page);
    print_not_checked_text(report, page, verbose);
}
