/* report_members.c: prints the tables of communicators and their members. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "cmd/report/report_print.h"
#include "lib/base/rankset.h"

enum {
    ROWS_MAX = 10, /* of a communicator, unless all ranks are wanted */
    COMMS_MAX = 12,
    NAMES_MAX = 4, /* of communicators that are not shown */
    NUMBERS = 3,   /* issued, started, done */
    RANKS_WIDTH_MOST = 24,
    RANKS_BYTES = 256
};

static const char *const number_title[NUMBERS] = {"issued", "started", "done"};

/* Ranks whose state is the same, as far as the table shows it. */
struct member_row {
    const struct member_state *first;
    struct rankset ranks;
    uint64_t least[NUMBERS], most[NUMBERS];
    uint64_t since_ns; /* the longest there */
};

struct member_table {
    struct member_row *row;
    int rows;
    int ranks_width, number_width[NUMBERS];
};

static bool stand_alike(const struct member_state *a, const struct member_state *b)
{
    return a->process < 0 ? b->process < 0
                          : b->process >= 0 && a->ended == b->ended &&
                                a->destroyed == b->destroyed && !strcmp(a->where, b->where);
}

static bool same_state(const struct member_state *a, const struct member_state *b)
{
    return stand_alike(a, b) && a->issued == b->issued && a->started == b->started &&
           a->done == b->done && a->p2p == b->p2p && !strcmp(a->phase, b->phase) &&
           !strcmp(a->last_call, b->last_call) && !strcmp(a->site, b->site);
}

static bool same_member(const struct member_state *a, const struct member_state *b)
{
    return a == b;
}

static void row_add(struct member_row *row, const struct member_state *member)
{
    const uint64_t number[NUMBERS] = {member->issued, member->started, member->done};
    bool is_first = !row->first;
    if (is_first)
        row->first = member;
    for (int i = 0; i < NUMBERS; i++) {
        if (is_first || number[i] < row->least[i])
            row->least[i] = number[i];
        if (is_first || number[i] > row->most[i])
            row->most[i] = number[i];
    }
    if (is_first || member->since_ns < row->since_ns)
        row->since_ns = member->since_ns;
    rankset_add(&row->ranks, member->shown_rank >= 0 ? member->shown_rank : member->rank);
}

static void table_free(struct member_table *table)
{
    for (int i = 0; i < table->rows; i++)
        rankset_free(&table->row[i].ranks);
    free(table->row);
    *table = (struct member_table){0};
}

/* Sorts members into rows of those that are the same. Without memory the table is empty. */
static void table_fill(struct member_table *table, const struct member_state *member, int count,
                       bool (*same)(const struct member_state *a, const struct member_state *b))
{
    table_free(table);
    table->row = calloc(count, sizeof *table->row);
    for (int i = 0; i < count && table->row; i++) {
        int at = same == same_member ? table->rows : 0; /* each is a row of its own */
        while (at < table->rows && !same(table->row[at].first, &member[i]))
            at++;
        table->rows += at == table->rows;
        row_add(&table->row[at], &member[i]);
    }
}

static int compare_progress(const void *a, const void *b)
{
    const struct member_row *x = a, *y = b;
    return (x->least[0] > y->least[0]) - (x->least[0] < y->least[0]);
}

/* "#41", "#38-41", "-" where nothing was. Counts become the number of the last one. */
static char *operations_text(uint64_t least, uint64_t most, char *text, size_t bytes)
{
    char number[LAST_NUMBER_BYTES];
    if (least == most)
        snprintf(text, bytes, "%s", last_number_text(most, number));
    else if (least == 0)
        snprintf(text, bytes, "-..#%" PRIu64, most - 1);
    else
        snprintf(text, bytes, "#%" PRIu64 "-%" PRIu64, least - 1, most - 1);
    return text;
}

static void print_member_where(const struct report *report, const struct member_row *row,
                               struct page *page)
{
    const struct member_state *member = row->first;
    char duration[64];
    if (member->process < 0) {
        page_words(page, STYLE_WARNING, "no NCCL call of it was recorded");
        return;
    }
    bool waits = row->since_ns && row->since_ns < report->end_ns && !member->ended;
    if (waits)
        page_format(page, STYLE_PLAIN, "%s",
                    moment_duration(report->end_ns - row->since_ns, duration, sizeof duration));
    page_format(page, member->ended ? STYLE_WARNING : STYLE_PLAIN, "%s%s", waits ? " " : "",
                member->where);
    if (*member->phase && !member->ended)
        page_format(page, STYLE_PLAIN, ", phase %s", member->phase);
    if (*member->site && !member->ended) {
        page_line(page);
        page_format(page, STYLE_PLAIN, "at %s", member->site);
    }
}

static void print_right(struct page *page, enum style style, int *column, int width,
                        const char *text)
{
    *column += width + 2;
    int begin = *column - text_width(text);
    page_column(page, begin > page->column ? begin : page->column + 1);
    page_text(page, style, text);
}

static void print_member_row(const struct report *report, const struct member_table *table,
                             const struct member_row *row, struct page *page)
{
    char text[RANKS_BYTES];
    int column = 2 + table->ranks_width;
    page_column(page, 2);
    page_text(page, STYLE_PLAIN, rankset_brief(&row->ranks, text, sizeof text));
    if (page->column > column)
        page_line(page);
    for (int i = 0; i < NUMBERS; i++)
        print_right(page, STYLE_PLAIN, &column, table->number_width[i],
                    operations_text(row->least[i], row->most[i], text, sizeof text));
    page->indent = column + 2;
    page_column(page, page->indent);
    print_member_where(report, row, page);
    if (*row->first->last_call && row->least[0] == row->most[0]) {
        page_line(page);
        page_format(page, STYLE_FAINT, "last: %s", row->first->last_call);
    }
    page_line(page);
}

static void print_titles(const struct member_table *table, struct page *page)
{
    int column = 2 + table->ranks_width;
    page_column(page, 2);
    page_text(page, STYLE_FAINT, "ranks");
    for (int i = 0; i < NUMBERS; i++)
        print_right(page, STYLE_FAINT, &column, table->number_width[i], number_title[i]);
    page_column(page, column + 2);
    page_text(page, STYLE_FAINT, "where they are");
    page_line(page);
}

static void measure_columns(struct member_table *table)
{
    char text[RANKS_BYTES];
    table->ranks_width = text_width("ranks");
    for (int i = 0; i < NUMBERS; i++)
        table->number_width[i] = text_width(number_title[i]);
    for (int row = 0; row < table->rows; row++) {
        int width = text_width(rankset_brief(&table->row[row].ranks, text, sizeof text));
        if (width > table->ranks_width && width <= RANKS_WIDTH_MOST)
            table->ranks_width = width;
        for (int i = 0; i < NUMBERS; i++) {
            width = text_width(operations_text(table->row[row].least[i], table->row[row].most[i],
                                               text, sizeof text));
            if (width > table->number_width[i])
                table->number_width[i] = width;
        }
    }
}

/* Which start of the job the communicator belongs to, where an elastic launcher started it more
 * than once. */
static void print_restart(const struct report *report, const struct member_state *member, int count,
                          struct page *page)
{
    int restart = -1, last = 0;
    for (int i = 0; i < count && restart < 0; i++)
        if (member[i].process >= 0)
            restart = trace_process(report->trace, member[i].process)->restart;
    for (int i = 0; i < trace_process_count(report->trace); i++)
        if (trace_process(report->trace, i)->restart > last)
            last = trace_process(report->trace, i)->restart;
    if (restart > 0)
        page_format(page, STYLE_PLAIN, ", restart %d", restart);
    else if (restart == 0 && last > 0)
        page_text(page, STYLE_PLAIN, ", before the first restart");
}

static void print_communicator(const struct report *report, const struct member_state *member,
                               int count, struct page *page, bool all_ranks)
{
    struct member_table table = {0};
    char name[16];
    table_fill(&table, member, count, all_ranks ? same_member : same_state);
    if (!all_ranks && table.rows > ROWS_MAX)
        table_fill(&table, member, count, stand_alike);
    int shown = table.rows;
    if (!all_ranks && table.rows > ROWS_MAX) {
        qsort(table.row, table.rows, sizeof *table.row, compare_progress);
        shown = ROWS_MAX;
    }
    page->indent = 0;
    page_words(page, STYLE_STRONG, *member->label ? member->label : comm_name(member->comm, name));
    if (member->nranks < 0)
        page_format(page, STYLE_PLAIN, " (communicator %016" PRIx64 ", its size is not known",
                    member->comm);
    else
        page_format(page, STYLE_PLAIN, " (communicator %016" PRIx64 ", %d %s", member->comm,
                    member->nranks, member->nranks == 1 ? "rank" : "ranks");
    print_restart(report, member, count, page);
    page_text(page, STYLE_PLAIN, ")");
    page_line(page);
    measure_columns(&table);
    print_titles(&table, page);
    for (int i = 0; i < shown; i++)
        print_member_row(report, &table, &table.row[i], page);
    if (shown < table.rows) {
        page->indent = 2;
        page_format(page, STYLE_FAINT,
                    "and %d more states, further on than these; --all-ranks shows each rank",
                    table.rows - shown);
    }
    page_gap(page);
    table_free(&table);
}

/* What of the communicators is left out. */
struct hidden_comms {
    int count;
    struct text names; /* of those that the program has named */
};

static void hide_comm(struct hidden_comms *hidden, const struct member_state *member)
{
    char unnamed[16];
    bool is_named = *member->label && strcmp(member->label, comm_name(member->comm, unnamed)) != 0;
    hidden->count++;
    if (hidden->count <= NAMES_MAX && is_named)
        text_add(&hidden->names, "%s%s", hidden->count > 1 ? ", " : "",
                 member->label + strlen("comm "));
}

static void print_hidden_members(struct hidden_comms *hidden, struct page *page)
{
    char *names = text_take(&hidden->names);
    page->indent = 0;
    if (hidden->count)
        page_format(page, STYLE_FAINT,
                    "and %d %s in which every rank is done with all it issued%s%s%s%s; --all-ranks "
                    "shows %s",
                    hidden->count, plural((uint64_t)hidden->count, "communicator", "communicators"),
                    names && *names ? " (" : "", names ? names : "",
                    hidden->count > NAMES_MAX && names && *names ? ", ..." : "",
                    names && *names ? ")" : "", plural((uint64_t)hidden->count, "it", "them"));
    if (hidden->count)
        page_gap(page);
    free(names);
}

/* Nobody is in anything and nobody lags. */
static bool is_quiet(const struct member_state *member, int count)
{
    for (int i = 0; i < count; i++)
        if (member[i].process < 0 || member[i].done != member[i].issued ||
            member[i].issued != member[0].issued)
            return false;
    return true;
}

void report_print_members(const struct report *report, struct page *page, bool all_ranks)
{
    int comms = 0, quiet = 0, count;
    struct hidden_comms hidden = {0};
    for (int i = 0; i < report->members; i += count) {
        count = report_comm_members(report, i);
        quiet += is_quiet(&report->member[i], count);
        comms++;
    }
    for (int i = 0; i < report->members; i += count) {
        const struct member_state *member = &report->member[i];
        count = report_comm_members(report, i);
        bool can_hide = comms > COMMS_MAX || quiet < comms;
        if (!all_ranks && can_hide && is_quiet(member, count))
            hide_comm(&hidden, member);
        else
            print_communicator(report, member, count, page, all_ranks);
    }
    print_hidden_members(&hidden, page);
    if (report->forgotten) {
        page->indent = 0;
        page_format(page, STYLE_FAINT,
                    "%s%" PRIu64 " %s not shown: every rank destroyed %s long before the end",
                    report->is_by_host ? "at least " : "", report->forgotten,
                    plural(report->forgotten, "communicator is", "communicators are"),
                    plural(report->forgotten, "it", "them"));
        page_gap(page);
    }
}
