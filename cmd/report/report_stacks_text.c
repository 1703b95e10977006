/* report_stacks_text.c: prints the grouped stacks of a report as text. */
#include <stdlib.h>

#include "cmd/report/report_print.h"
#include "lib/trace/site.h"
#include "lib/base/moment.h"

enum { GROUPS_SHOWN = 8, FRAMES_SHOWN = 6, VALUE_COLUMN = 16, RANKS_BYTES = 256, TIME_BYTES = 64 };

static void print_standing_frames(const struct report *report,
                                  const struct report_standing *standing, struct page *page,
                                  bool all)
{
    struct frame *frame = malloc(SITE_FRAMES_MAX * sizeof *frame);
    int count = frame ? site_frames(report->trace, standing->process, standing->stack, false, frame)
                      : 0;
    bool cut = !all && count > FRAMES_SHOWN + 1;
    int first = cut ? site_first_frame(frame, count, FRAMES_SHOWN) : 0, left = count - first;
    int shown = cut && left > FRAMES_SHOWN ? FRAMES_SHOWN : left;
    report_print_frames(page, "", (const int[]){VALUE_COLUMN, VALUE_COLUMN}, frame + first, shown);
    page_line(page);
    if (count > shown) {
        page_column(page, VALUE_COLUMN);
        page_format(page, STYLE_FAINT, "and %d more", count - shown);
        page_line(page);
    }
    free(frame);
}

/* "ranks 0-2", or the process where it has no rank. */
static void print_stack_ranks(const struct report *report, const struct stack_group *group,
                              struct page *page)
{
    char ranks[RANKS_BYTES];
    int count = rankset_count(&group->ranks);
    page_column(page, 2);
    if (count)
        page_format(page, STYLE_STRONG, "%s", rankset_words(&group->ranks, ranks, sizeof ranks));
    else
        page_format(page, STYLE_STRONG, "process %d",
                    trace_process(report->trace, group->first->process)->pid);
    if (page->column > VALUE_COLUMN - 2)
        page_line(page);
    page_column(page, VALUE_COLUMN);
}

static void print_stack_group(const struct report *report, const struct stack_group *group,
                              struct page *page, bool all)
{
    char called[256];
    const struct report_standing *standing = group->first;
    const char *name = trace_string(report->trace, standing->process, standing->name);
    page->indent = VALUE_COLUMN;
    print_stack_ranks(report, group, page);
    if (standing->flags & RECORD_THREAD_MAIN)
        page_words(page, STYLE_PLAIN, "main thread");
    else if (group->threads == 1)
        page_format(page, STYLE_PLAIN, "thread %s", name ? name : "without a name");
    else
        page_format(page, STYLE_PLAIN, "%d threads, %s", group->threads,
                    name ? name : "without a name");
    if (*standing_waits_in(report, standing, called, sizeof called))
        page_format(page, STYLE_PLAIN, ", in %s", called);
    else if (standing->syscall < 0)
        page_words(page, STYLE_PLAIN, ", running");
    print_standing_frames(report, standing, page, all);
}

void report_print_stacks(const struct report *report, struct page *page, bool all)
{
    struct stack_group *groups;
    char duration[TIME_BYTES];
    int count = stack_groups(report, &groups);
    int shown = all || count <= GROUPS_SHOWN ? count : GROUPS_SHOWN;
    if (count) {
        uint64_t time_ns = groups[0].first->time_ns;
        page->indent = 0;
        page_words(page, STYLE_STRONG, "Where the threads were");
        uint64_t passed_ns = report->end_ns > time_ns ? report->end_ns - time_ns : 0;
        page_format(page, STYLE_PLAIN, " when the job hung, %s %s",
                    moment_duration(passed_ns, duration, sizeof duration),
                    report->collecting ? "ago" : "before the end");
        page_line(page);
    }
    for (int i = 0; i < shown; i++)
        print_stack_group(report, &groups[i], page, all);
    if (count > shown) {
        page->indent = 2;
        page_column(page, 2);
        page_format(page, STYLE_FAINT, "and %d more groups of threads; --all-ranks shows them",
                    count - shown);
    }
    if (count)
        page_gap(page);
    stack_groups_free(groups, count);
}

void report_print_frames(struct page *page, const char *label, const int column[2],
                         const struct frame *frame, int count)
{
    char function[sizeof frame->function + 32], place[sizeof frame->file];
    int widest = 0, most = (page->width - column[1]) / 2;
    for (int i = 0; i < count; i++) {
        int width = text_width(frame_function(&frame[i], function, sizeof function));
        widest = width > widest ? width : widest;
    }
    int places = column[1] + (widest < most ? widest : most) + 2;
    for (int i = 0; i < count; i++) {
        page_line(page);
        page_column(page, column[0]);
        page_text(page, STYLE_FAINT, i == 0 ? label : "");
        page_column(page, column[1]);
        page_text(page, i == 0 ? STYLE_STRONG : STYLE_PLAIN,
                  frame_function(&frame[i], function, sizeof function));
        int begin = page->column + 2 > places ? page->column + 2 : places;
        if (!*frame_place(&frame[i], page->width - begin, place, sizeof place))
            continue;
        page_column(page, begin);
        page_text(page, STYLE_PLAIN, place);
    }
}
