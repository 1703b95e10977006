/* diff_text.c: differences for people, each like a hunk of diff(1), with the places in the program.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/diff/diff_print.h"
#include "cmd/report/report_print.h"
#include "lib/base/moment.h"
#include "lib/trace/names.h"

enum { CONTEXT = 3, SHOWN_MAX = 8, FRAMES_SHOWN = 3, NUMBER_COLUMN = 6, CALL_COLUMN = 22 };

bool diff_equal(const struct diff_report *report)
{
    return !report->result->differences && !report->orders->differences &&
           !report->pairs->extras[0] && !report->pairs->extras[1] &&
           !rankset_count(&report->result->only[0]) && !rankset_count(&report->result->only[1]);
}

int diff_read_ops(struct diff_side *side, int member, uint64_t at, int most, struct diff_op *op,
                  struct error *err)
{
    sqlite3_stmt *ops = diff_ops(side, member, at, err);
    int count = 0, got = 1;
    if (!ops)
        return -1;
    while (count < most && (got = diff_op_next(ops, &op[count])) > 0)
        count++;
    if (got < 0)
        error_set(err, "can't read the temporary file of %s: %s", side->path,
                  sqlite3_errmsg(side->store));
    sqlite3_finalize(ops);
    return got < 0 ? -1 : count;
}

/* "#25", or "" for a send or receive, which has no place among the collectives. */
static const char *format_op_number(const struct diff_op *op, char text[24])
{
    text[0] = '\0';
    if (api_class_of(op->record.api) == CLASS_COLLECTIVE)
        snprintf(text, 24, "#%" PRIu64, op->record.op.number);
    return text;
}

/* One operation: mark, its number on each side that has it, the call. */
static void print_op(struct page *page, const char *mark, const struct diff_op *a,
                     const struct diff_op *b)
{
    char text[256], number[24];
    enum style style = a && b ? STYLE_PLAIN : STYLE_STRONG;
    page_line(page);
    page_column(page, 2);
    page_text(page, style, mark);
    page_column(page, NUMBER_COLUMN);
    page_text(page, style, a ? format_op_number(a, number) : "");
    page_column(page, NUMBER_COLUMN + 8);
    page_text(page, style, b ? format_op_number(b, number) : "");
    page_column(page, CALL_COLUMN);
    page_text(page, style, record_text(&(a ? a : b)->record, text, sizeof text));
}

static void print_site(struct page *page, struct diff_side *side, int member,
                       const struct diff_op *op)
{
    struct frame frame[SITE_FRAMES_MAX];
    const int column[2] = {CALL_COLUMN, CALL_COLUMN + 4};
    int count = site_frames(side->trace, side->member[member].process, op->record.stack,
                            op->record.flags & RECORD_FLAG_ADDRESS, frame);
    int first = site_first_frame(frame, count, FRAMES_SHOWN), left = count - first;
    report_print_frames(page, "at", column, frame + first,
                        left < FRAMES_SHOWN ? left : FRAMES_SHOWN);
}

static int print_context(const struct diff_report *report, struct page *page,
                         const struct difference *difference, bool before, struct error *err)
{
    struct diff_op op[2][CONTEXT];
    int count[2];
    const struct hunk *hunk = &difference->hunk;
    uint64_t earlier = hunk->at[0] < hunk->at[1] ? hunk->at[0] : hunk->at[1];
    int most = before && earlier < CONTEXT ? (int)earlier : CONTEXT;
    for (int which = 0; which < 2; which++) {
        uint64_t at = hunk->at[which] + (before ? 0 : hunk->count[which]);
        count[which] = diff_read_ops(report->side[which], difference->member[which],
                                     before ? at - (uint64_t)most : at, most, op[which], err);
        if (count[which] < 0)
            return -1;
    }
    for (int i = 0; i < count[0] && i < count[1]; i++) {
        print_op(page, "", &op[0][i], &op[1][i]);
        bool first_after = !before && i == 0;
        for (int which = 0; which < 2 && first_after; which++)
            if (!hunk->count[which]) /* what this side called instead */
                print_site(page, report->side[which], difference->member[which], &op[which][i]);
    }
    return 0;
}

/* An operation that one side alone has. */
static void print_lone_op(struct page *page, const struct diff_op *op, int which)
{
    if (which)
        print_op(page, "+", NULL, op);
    else
        print_op(page, "-", op, NULL);
}

static int print_difference_side(const struct diff_report *report, struct page *page,
                                 const struct difference *difference, int which, struct error *err)
{
    struct diff_op op[SHOWN_MAX];
    uint64_t count = difference->hunk.count[which];
    if (!count)
        return 0;
    int most = count < SHOWN_MAX ? (int)count : SHOWN_MAX;
    most = diff_read_ops(report->side[which], difference->member[which], difference->hunk.at[which],
                         most, op, err);
    if (most < 0)
        return -1;
    for (int i = 0; i < most; i++) {
        print_lone_op(page, &op[i], which);
        if (i == 0)
            print_site(page, report->side[which], difference->member[which], &op[i]);
    }
    if (count > (uint64_t)most) {
        page_line(page);
        page_column(page, 2);
        page_format(page, STYLE_STRONG, "%s and %" PRIu64 " more", which ? "+" : "-",
                    count - (uint64_t)most);
    }
    return 0;
}

/* Which side has nothing behind the difference: 0, 1, 2 for both, -1 for none. */
static int ended(const struct difference *difference)
{
    if (difference->at_end[0] && difference->at_end[1] && difference->hunk.count[0] &&
        difference->hunk.count[1])
        return 2;
    for (int which = 0; which < 2; which++)
        if (difference->at_end[which] && !difference->hunk.count[which])
            return which;
    return -1;
}

/* What the difference amounts to. */
static void print_meaning(const struct diff_report *report, struct page *page,
                          const struct difference *difference)
{
    const struct hunk *hunk = &difference->hunk;
    int end = ended(difference);
    page_line(page);
    page->indent = 2;
    if (hunk->open || end >= 0 || difference->key.times > 1)
        page_column(page, 2);
    if (hunk->open)
        page_format(page, STYLE_PLAIN,
                    "From here on nothing is equal: %" PRIu64 " operations in %s, %" PRIu64
                    " in %s.",
                    hunk->count[0], report->name[0], hunk->count[1], report->name[1]);
    else if (end == 2)
        page_format(page, STYLE_PLAIN, "Both end here.");
    else if (end >= 0)
        page_format(page, STYLE_PLAIN, "%s ends here; %s goes on.", report->name[end],
                    report->name[1 - end]);
    if (difference->key.times > 1)
        page_format(page, STYLE_PLAIN,
                    "%sThe same %" PRIu64 " times in all, last at operation %" PRIu64 ".",
                    hunk->open || end >= 0 ? " " : "", difference->key.times, difference->key.last);
    page->indent = 0;
    page_line(page);
}

static void print_heading(const struct diff_report *report, struct page *page,
                          const struct difference *difference, int index)
{
    char ranks[256], members[256], time[64];
    const struct diff_pair *pair = &report->pairs->pair[difference->key.pair];
    const struct diff_comm *comm[2] = {&report->side[0]->comm[pair->comm[0]],
                                       &report->side[1]->comm[pair->comm[1]]};
    bool one = rankset_count(&difference->ranks) == 1;
    page_gap(page);
    page->indent = 2;
    page_format(page, STYLE_STRONG, "%d.", index + 1);
    if (report->side[0] == report->side[1])
        page_format(page, STYLE_STRONG, " %s and %s", report->name[0], report->name[1]);
    else
        page_format(page, STYLE_STRONG, " rank%s %s", one ? "" : "s",
                    rankset_brief(&difference->ranks, ranks, sizeof ranks));
    page_format(page, STYLE_STRONG, ", %s after the beginning",
                moment_duration(difference->since_begin_ns, time, sizeof time));
    page_format(page, STYLE_PLAIN, ", on the communicator of ranks %s (%04x in %s, %04x in %s)",
                diff_comm_ranks(report->side[0], comm[0], members, sizeof members),
                (unsigned)(comm[0]->id >> 48), report->name[0], (unsigned)(comm[1]->id >> 48),
                report->name[1]);
    page->indent = 0;
    page_line(page);
}

static int print_difference_text(const struct diff_report *report, struct page *page, int index,
                                 struct error *err)
{
    const struct difference *difference = report->result->difference[index];
    print_heading(report, page, difference, index);
    if (print_context(report, page, difference, true, err) ||
        print_difference_side(report, page, difference, 0, err) ||
        print_difference_side(report, page, difference, 1, err))
        return -1;
    if (!difference->hunk.open && print_context(report, page, difference, false, err))
        return -1;
    print_meaning(report, page, difference);
    return 0;
}

/* One side of a difference in order. */
static void print_order_side(const struct diff_report *report, struct page *page,
                             const struct order_difference *difference, int which)
{
    char members[256];
    struct diff_side *side = report->side[which];
    const struct diff_op *op = &difference->op[which];
    const struct diff_comm *comm = &side->comm[side->member[op->member].comm];
    print_lone_op(page, op, which);
    page->indent = CALL_COLUMN;
    page_format(page, STYLE_PLAIN, " on the communicator of ranks %s (%04x)",
                diff_comm_ranks(side, comm, members, sizeof members), (unsigned)(comm->id >> 48));
    page->indent = 0;
    print_site(page, side, op->member, op);
}

static void print_orders_text(const struct diff_report *report, struct page *page)
{
    char ranks[256];
    for (int i = 0; i < report->orders->differences && i < report->limit; i++) {
        const struct order_difference *difference = &report->orders->difference[i];
        page_gap(page);
        page->indent = 2;
        bool one = rankset_count(&difference->ranks) == 1 && report->side[0] != report->side[1];
        if (report->side[0] == report->side[1])
            page_format(page, STYLE_STRONG, "Order: %s and %s", report->name[0], report->name[1]);
        else
            page_format(page, STYLE_STRONG, "Order: rank%s %s", one ? "" : "s",
                        rankset_brief(&difference->ranks, ranks, sizeof ranks));
        page_format(page, STYLE_PLAIN,
                    " %s the same on each communicator, but not in the same order of "
                    "communicators; behind %" PRIu64 " equal operations:",
                    one ? "calls" : "call", difference->index);
        page->indent = 0;
        print_order_side(report, page, difference, 0);
        print_order_side(report, page, difference, 1);
        page_line(page);
    }
}

static void print_sides(const struct diff_report *report, struct page *page)
{
    bool one_trace = report->side[0] == report->side[1];
    for (int which = 0; which < 2; which++) {
        const struct diff_side *side = report->side[which];
        struct rankset ranks = {0};
        for (int i = 0; i < side->members; i++)
            if (side->member[i].shown_rank >= 0)
                rankset_add(&ranks, side->member[i].shown_rank);
        char text[256];
        page_line(page);
        if (one_trace)
            page_format(page, STYLE_PLAIN, "%s of %s", report->name[which], side->path);
        else
            page_format(page, STYLE_PLAIN,
                        "%s: %s, ranks %s, %" PRIu64 " operations on %d communicator%s",
                        report->name[which], side->path, rankset_brief(&ranks, text, sizeof text),
                        side->operations, side->comms, side->comms == 1 ? "" : "s");
        rankset_free(&ranks);
    }
    page_line(page);
}

static void print_setup_text(const struct diff_report *report, struct page *page)
{
    char ranks[256];
    for (int i = 0; i < report->setup->differences; i++) {
        const struct setup_difference *difference = &report->setup->difference[i];
        if (i == 0) {
            page_gap(page);
            page_text(page, STYLE_STRONG, "How they were started differs:");
        }
        page_line(page);
        page->indent = 4;
        page_column(page, 2);
        page_format(page, STYLE_PLAIN, "%s: %s in %s, %s in %s", difference->what,
                    difference->value[0], report->name[0], difference->value[1], report->name[1]);
        if (report->side[0] != report->side[1])
            page_format(page, STYLE_PLAIN, " (ranks %s)",
                        rankset_brief(&difference->ranks, ranks, sizeof ranks));
        page->indent = 0;
        page_line(page);
    }
}

static void print_sum(const struct diff_report *report, struct page *page)
{
    const struct diff_result *result = report->result;
    page_gap(page);
    if (!result->members && report->gaps->gaps)
        return; /* that is an error, which the caller reports */
    if (diff_equal(report) && !result->members)
        page_text(page, STYLE_PLAIN, "Neither has operations of NCCL to compare.");
    else if (diff_equal(report) && report->gaps->gaps)
        page_text(
            page, STYLE_GOOD,
            "As far as they are compared, they called the same operations in the same order.");
    else if (diff_equal(report))
        page_text(page, STYLE_GOOD, "They called the same operations in the same order.");
    else
        page_format(page, STYLE_STRONG,
                    "%d difference%s; of %" PRIu64 " members of communicators %" PRIu64 " differ.",
                    result->differences + report->orders->differences,
                    result->differences + report->orders->differences == 1 ? "" : "s",
                    result->members, result->unequal);
    page_line(page);
}

int diff_print_text(const struct diff_report *report, struct page *page, struct error *err)
{
    print_sides(report, page);
    diff_print_not_compared(report, page);
    int shown = report->result->differences < report->limit ? report->result->differences
                                                            : report->limit;
    for (int i = 0; i < shown; i++)
        if (print_difference_text(report, page, i, err))
            return -1;
    uint64_t left = (uint64_t)(report->result->differences - shown) + report->result->not_counted;
    if (left) {
        page_gap(page);
        page_format(page, STYLE_PLAIN, "... and %" PRIu64 " more differences (--limit shows them).",
                    left);
        page_line(page);
    }
    print_orders_text(report, page);
    print_setup_text(report, page);
    diff_print_speed_text(report, page);
    print_sum(report, page);
    return 0;
}
