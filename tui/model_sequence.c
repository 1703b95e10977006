/* model_sequence.c: the collectives of one communicator: what most ranks called at each number, a
 * mark per rank, and what the others called. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/rankset.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/operations.h"
#include "tui/view.h"
#include "tui/width.h"

enum { CELL_NUMBER, CELL_MARKS, CELL_CALL, CELL_OTHERS };
enum {
    WINDOW_LEAST = 16,
    WINDOW_MOST = 512,
    OPERATIONS_MOST = 1 << 18,
    MARKS_LEAST = 16,
    MARKS_MOST = 64,
    CALL_WIDTH = 48, /* left for the number and the call */
    RANKS_BYTES = 128,
    LEGEND_HEIGHT = 16
};

/* Calls of one number that are alike. */
struct sequence_variant {
    const char *text;
    struct rankset ranks;
    int count;
};

enum { VARIANTS_MAX = 8 };

static int find_variants(const struct tui_operation *operation, int count,
                         struct sequence_variant variant[VARIANTS_MAX])
{
    int variants = 0;
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < variants && strcmp(variant[k].text, operation[i].text))
            k++;
        if (k == VARIANTS_MAX)
            continue;
        if (k == variants)
            variant[variants++] = (struct sequence_variant){.text = operation[i].text};
        rankset_add(&variant[k].ranks, operation[i].rank);
        variant[k].count++;
    }
    int most = 0;
    for (int k = 1; k < variants; k++)
        if (variant[k].count > variant[most].count)
            most = k;
    struct sequence_variant first = variant[0];
    variant[0] = variant[most];
    variant[most] = first;
    return variants;
}

/* A mark for each stretch of ranks: different beats not called beats the same. */
static void add_marks(const struct query *query, const struct tui_comm *comm,
                      const struct sequence_variant *variant, int variants, struct text *text)
{
    const struct signs *signs = signs_of(query);
    int ranks = comm->nranks > comm->members ? comm->nranks : comm->members;
    int room = rows_clamp(query->width - CALL_WIDTH, MARKS_LEAST, MARKS_MOST);
    int marks = ranks < room ? ranks : room;
    for (int i = 0; i < marks; i++) {
        const char *mark = signs->same;
        for (int rank = (int)((long)i * ranks / marks); rank < (int)((long)(i + 1) * ranks / marks);
             rank++) {
            bool same = rankset_has(&variant[0].ranks, rank), differs = false;
            for (int k = 1; k < variants; k++)
                differs |= rankset_has(&variant[k].ranks, rank);
            if (differs)
                mark = signs->differs;
            else if (!same && mark == signs->same)
                mark = signs->dot;
        }
        text_add(text, "%s", mark);
    }
}

static void add_sequence_number(const struct query *query, const struct tui_comm *comm,
                                const struct tui_operation *operation, int count, struct rows *rows)
{
    struct sequence_variant variant[VARIANTS_MAX];
    char ranks[RANKS_BYTES];
    struct text marks = {0}, others = {0};
    int variants = find_variants(operation, count, variant);
    add_marks(query, comm, variant, variants, &marks);
    for (int k = 1; k < variants; k++)
        text_add(&others, "%s%s: %s", k > 1 ? "; " : "",
                 rankset_brief(&variant[k].ranks, ranks, sizeof ranks), variant[k].text);
    char *marked = text_take(&marks), *other = text_take(&others);
    bool all = count >= comm->nranks;
    enum tone tone = all ? TONE_PLAIN : TONE_WARNING;
    if (variants > 1)
        tone = TONE_ERROR;
    struct row *row = rows_add(rows, operation->number + 1, 0);
    row_set(row, CELL_NUMBER, tone, "#%llu", (unsigned long long)operation->number);
    row_set(row, CELL_MARKS, tone, "%s", marked ? marked : "");
    row_set(row, CELL_CALL, TONE_PLAIN, "%s", variant[0].text);
    row_set(row, CELL_OTHERS, tone, "%s", other ? other : "");
    free(marked);
    free(other);
    for (int k = 0; k < variants; k++)
        rankset_free(&variant[k].ranks);
}

/* The numbers to show: around the one that is wanted. */
static int choose(struct source *source, struct query *query, const struct tui_comm *comm,
                  struct rows *rows, struct error *err)
{
    uint64_t number;
    if (query->number == NUMBER_DIVERGENCE) {
        int found = operations_divergence(source, comm->id, &number, err);
        if (found < 0)
            return -1;
        if (!found)
            rows_line(rows, TONE_GOOD, "All ranks called the same, as far as they went.");
        query->number = found ? (int64_t)number : NUMBER_LAST;
    }
    int64_t newest = comm->most_issued ? (int64_t)comm->most_issued - 1 : 0;
    if (query->number == NUMBER_LAST || query->number > newest)
        query->number = newest;
    return 0;
}

/* How many communicators the keys go through, and how many ranks there are, is left out where it
 * has no room. */
static void add_sequence_head(const struct query *query, const struct tui_comm *comm, int comms,
                              struct rows *rows)
{
    char head[256], keys[64] = "", count[64];
    snprintf(count, sizeof count, "%llu collective%s", (unsigned long long)comm->most_issued,
             comm->most_issued == 1 ? "" : "s");
    if (comm->nranks > 0)
        snprintf(head, sizeof head, "%s, %d rank%s, %s", comm->member->label, comm->nranks,
                 comm->nranks == 1 ? "" : "s", count);
    else
        snprintf(head, sizeof head, "%s, its size is not known, %s", comm->member->label, count);
    if (width_of(head) > query->width)
        snprintf(head, sizeof head, "%s, %s", comm->member->label, count);
    if (comms == 2)
        snprintf(keys, sizeof keys, "; c: the other communicator");
    else if (comms > 2)
        snprintf(keys, sizeof keys, "; c, C: %d other communicators", comms - 1);
    bool fits = width_of(head) + width_of(keys) <= query->width;
    rows_line(rows, TONE_STRONG, "%s%s", head, fits ? keys : "");
    const struct signs *signs = signs_of(query);
    if (query->height >= LEGEND_HEIGHT)
        rows_line(rows, TONE_FAINT, "%s as most, %s different, %s not called", signs->same,
                  signs->differs, signs->dot);
}

static int model_sequence(struct source *source, struct query *query, struct rows *rows,
                          struct error *err)
{
    struct members members;
    struct operations operations = {0};
    if ((!query->comm && findings_worst_comm(source, &query->comm, err) < 0) ||
        members_load(&members, source, err) < 0)
        return -1;
    const struct tui_comm *comm = members_comm(&members, query->comm, query->comm_step);
    query->comm_step = 0;
    int result = 0;
    rows->empty = "No collective on this communicator.";
    if (comm) {
        query->comm = comm->id;
        if (comm->most_issued)
            rows->empty = "Which collectives these were is not recorded.";
        add_sequence_head(query, comm, members.comms, rows);
        result = choose(source, query, comm, rows, err);
        int window = OPERATIONS_MOST / (comm->nranks > 0 ? comm->nranks : 1);
        query->window = rows_clamp(window, WINDOW_LEAST, WINDOW_MOST);
        uint64_t middle = (uint64_t)query->number, half = (uint64_t)query->window / 2,
                 first = middle > half ? middle - half : 0;
        if (result == 0)
            result =
                operations_load(&operations, source, comm->id, first, first + half * 2 - 1, err);
    }
    rows_column(rows, "number", 0, true);
    rows_column(rows, "ranks", MARKS_MOST, false);
    rows_column(rows, "call", 0, false);
    rows_column_optional(rows, "others", 0, false);
    for (int i = 0, end; i < operations.count; i = end) {
        for (end = i + 1; end < operations.count &&
                          operations.operation[end].number == operations.operation[i].number;
             end++)
            ;
        add_sequence_number(query, comm, &operations.operation[i], end - i, rows);
    }
    operations_free(&operations);
    members_free(&members);
    return result;
}

const struct view view_sequence = {
    .name = "Sequence",
    .about = "The operations of one communicator. A mark per rank: like most, different, "
             "not called yet.",
    .load = model_sequence,
    .key = {{"d", "the first place where ranks differ"},
            {"c C", "next, previous communicator"},
            {"G", "the last"},
            {"g", "the first"}},
};
