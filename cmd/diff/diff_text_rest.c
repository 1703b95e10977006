/* diff_text_rest.c: what of two traces is not compared, since only one of them has it. */
#include <inttypes.h>

#include "cmd/diff/diff_print.h"

char *diff_comm_ranks(const struct diff_side *side, const struct diff_comm *comm, char *text,
                      size_t bytes)
{
    struct rankset ranks = {0};
    for (int i = 0; i < comm->ranks; i++)
        if (comm->member[i] >= 0 && side->member[comm->member[i]].shown_rank >= 0)
            rankset_add(&ranks, side->member[comm->member[i]].shown_rank);
    rankset_brief(&ranks, text, bytes);
    rankset_free(&ranks);
    return text;
}

static void print_gap(const struct diff_report *report, struct page *page,
                      const struct diff_gap *gap)
{
    char ranks[256], members[256];
    const struct diff_comm *comm = &report->side[0]->comm[report->pairs->pair[gap->pair].comm[0]];
    const char *who = gap->dropped[0] && gap->dropped[1] ? "both" : report->name[gap->dropped[1]];
    page_format(page, STYLE_STRONG, "Communicator of ranks %s (%04x in %s)",
                diff_comm_ranks(report->side[0], comm, members, sizeof members),
                (unsigned)(comm->id >> 48), report->name[0]);
    if (report->side[0] != report->side[1])
        page_format(page, STYLE_STRONG, ", rank%s %s", rankset_count(&gap->ranks) == 1 ? "" : "s",
                    rankset_brief(&gap->ranks, ranks, sizeof ranks));
    if (gap->number == DIFF_NOTHING)
        page_format(page, STYLE_PLAIN, ": not compared: no call is in both,");
    else if (gap->number == gap->last_number)
        page_format(page, STYLE_PLAIN, ": compared from #%" PRIu64 " on,", gap->number);
    else
        page_format(page, STYLE_PLAIN,
                    ": compared from #%" PRIu64 " on, some ranks from #%" PRIu64 ",", gap->number,
                    gap->last_number);
    page_format(page, STYLE_PLAIN, " since %s dropped finished calls (--keep).", who);
    page_line(page);
}

static void print_gaps(const struct diff_report *report, struct page *page)
{
    for (int i = 0; i < report->gaps->gaps; i++) {
        if (i == 0)
            page_gap(page);
        if (i == report->limit) {
            page_format(page, STYLE_PLAIN, "... and %d more.", report->gaps->gaps - i);
            page_line(page);
            return;
        }
        print_gap(report, page, &report->gaps->gap[i]);
    }
}

static void print_only_one(const struct diff_report *report, struct page *page)
{
    char text[512];
    for (int which = 0; which < 2; which++) {
        const struct diff_side *side = report->side[which];
        if (rankset_count(&report->result->only[which])) {
            page_gap(page);
            page_format(page, STYLE_STRONG, "Only %s has a trace of ranks %s.", report->name[which],
                        rankset_brief(&report->result->only[which], text, sizeof text));
            page_line(page);
        }
        for (int i = 0; i < report->pairs->extras[which]; i++) {
            const struct diff_comm *comm = &side->comm[report->pairs->extra[which][i]];
            uint64_t operations = 0;
            for (int rank = 0; rank < comm->ranks; rank++)
                operations += comm->member[rank] < 0 ? 0
                                                     : side->member[comm->member[rank]].operations;
            if (i == 0)
                page_gap(page);
            if (i == report->limit) {
                page_format(page, STYLE_PLAIN, "... and %d more communicators that only %s has.",
                            report->pairs->extras[which] - i, report->name[which]);
                break;
            }
            page_format(page, STYLE_STRONG,
                        "Only %s has communicator %04x of ranks %s (%" PRIu64 " operations).",
                        report->name[which], (unsigned)(comm->id >> 48),
                        diff_comm_ranks(side, comm, text, sizeof text), operations);
            page_line(page);
        }
    }
}

void diff_print_not_compared(const struct diff_report *report, struct page *page)
{
    print_gaps(report, page);
    print_only_one(report, page);
}
