/* model_now.c: where every rank of every communicator stands. A line per communicator with a mark
 * per rank (or per stretch of ranks, the worst of each), below it the ranks in equal state,
 * outliers first. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "lib/base/rankset.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/operations.h"
#include "tui/view.h"

enum {
    GROUPS_MAX = 12,
    STRIP_LEAST = 16,
    STRIP_MOST = 1000,
    RANKS_BYTES = 256,
    SITE_BYTES = 160,
    WHERE_BYTES = 1024
};
enum { NUMBERS_WIDTH = 26, COUNTS_WIDTH = 30, WIDE = 110 };
enum { COMMS_MOST = 32, FOLDED_ID = 1 };
enum { CELL_WHO, CELL_NUMBER, CELL_LAG, CELL_WHERE };

/* Members that stand alike at the same place. */
struct group {
    const struct member_state *first;
    struct rankset ranks;
    uint64_t since_ns;
    bool arguments_differ, waits_differ;
};

static const char *standing_sign(const struct signs *signs, enum standing standing)
{
    const char *const sign[STANDINGS] = {
        [STANDS_MISSING] = signs->missing, [STANDS_EXITED] = signs->exited,
        [STANDS_UNSEEN] = signs->unseen,   [STANDS_BEHIND] = signs->behind,
        [STANDS_ISSUED] = signs->issued,   [STANDS_STARTED] = signs->started,
        [STANDS_DONE] = signs->done,       [STANDS_OVER] = signs->done,
    };
    return sign[standing];
}

static enum tone tone_of(enum standing standing)
{
    if (standing <= STANDS_EXITED)
        return TONE_ERROR;
    if (standing <= STANDS_BEHIND)
        return TONE_WARNING;
    return standing >= STANDS_DONE ? TONE_GOOD : TONE_PLAIN;
}

/* A mark for each of at most `width` stretches of ranks: that of its worst member. */
static void strip(const struct tui_comm *comm, const struct signs *signs, int width, char *text,
                  size_t bytes)
{
    int ranks = comm->members, marks = ranks < width ? ranks : width;
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < marks; i++) {
        enum standing worst = STANDS_OVER;
        for (int k = (int)((long)i * ranks / marks); k < (int)((long)(i + 1) * ranks / marks); k++)
            if (comm->member[k].standing < worst)
                worst = comm->member[k].standing;
        int added = snprintf(text + used, bytes - used, "%s", standing_sign(signs, worst));
        if (added < 0 || (used += (size_t)added) >= bytes)
            return;
    }
}

static void counts(const struct tui_comm *comm, struct text *text)
{
    const char *between = "";
    for (int i = 0; i < STANDINGS; i++) {
        if (comm->count[i] == 0)
            continue;
        /* Before the first collective none is done: its set-up or messages may still run. */
        bool unused = i == STANDS_DONE && comm->most_issued == 0;
        text_add(text, "%s%d %s", between, comm->count[i],
                 unused ? "without a collective" : standing_name(i));
        between = ", ";
    }
}

/* Whether both texts are the same but for what stands in parentheses (arguments, sizes), up to the
 * first comma outside of them or to the end. */
static bool same_words(const char *a, const char *b, bool to_the_end)
{
    for (;; a++, b++) {
        if (*a != *b)
            return false;
        if (*a == '(') {
            a += strcspn(a, ")");
            b += strcspn(b, ")");
        }
        if (!*a || !*b)
            return *a == *b;
        if (*a == ',' && !to_the_end)
            return true;
    }
}

static bool alike(const struct member_state *a, const struct member_state *b)
{
    return a->standing == b->standing && a->issued == b->issued && a->started == b->started &&
           a->done == b->done && same_words(a->where, b->where, false) &&
           !strcmp(a->phase, b->phase);
}

static int now_worse_first(const void *left, const void *right)
{
    const struct group *a = left, *b = right;
    if (a->first->standing != b->first->standing)
        return (int)a->first->standing - (int)b->first->standing;
    return a->first->rank - b->first->rank;
}

/* Groups of equal members; *more ranks are in none because there are too many groups. */
static int find_groups(const struct tui_comm *comm, struct group group[GROUPS_MAX], int *more)
{
    int groups = 0;
    *more = 0;
    for (enum standing standing = 0; standing < STANDINGS; standing++) {
        for (int i = 0; i < comm->members; i++) {
            const struct member_state *member = &comm->member[i];
            int k = 0;
            if (member->standing != standing)
                continue;
            while (k < groups && !alike(group[k].first, member))
                k++;
            if (k == GROUPS_MAX) {
                ++*more;
                continue;
            }
            if (k == groups)
                group[groups++] = (struct group){.first = member, .since_ns = member->since_ns};
            if (member->since_ns && member->since_ns < group[k].since_ns)
                group[k].since_ns = member->since_ns;
            group[k].arguments_differ |= strcmp(group[k].first->where, member->where) != 0;
            group[k].waits_differ |= !same_words(group[k].first->where, member->where, true);
            rankset_add(&group[k].ranks, member->shown_rank);
        }
    }
    qsort(group, (size_t)groups, sizeof *group, now_worse_first);
    return groups;
}

/* Up to the first comma that is not between a call's arguments. */
static int call_length(const char *where)
{
    int length = 0, depth = 0;
    for (; where[length] && (where[length] != ',' || depth > 0); length++)
        depth += (where[length] == '(') - (where[length] == ')');
    return length;
}

/* "train.c:12 step(), in cudaStreamSynchronize 41 s, waiting for ...": the user's line comes
 * first, so that it is on narrow screens, too. */
static void set_where(struct source *source, const struct query *query, const struct group *group,
                      struct row *row)
{
    const struct member_state *member = group->first;
    char duration[64] = "", site[SITE_BYTES], where[WHERE_BYTES];
    snprintf(where, sizeof where, "%s", member->where);
    if (group->arguments_differ)
        operation_shorten_more(where);
    int call = call_length(where);
    if (group->waits_differ)
        where[call] = '\0';
    if (group->since_ns && source->now_ns > group->since_ns && !member->ended)
        moment_duration(source->now_ns - group->since_ns, duration, sizeof duration);
    member_site(source, member, query->width >= WIDE, site, sizeof site);
    bool phase = *member->phase && !member->ended;
    row_set(row, CELL_WHERE, TONE_PLAIN, "%s%s%.*s%s%s%s%s%s", site, *site ? ", " : "", call, where,
            *duration ? " " : "", duration, phase ? ", phase " : "", phase ? member->phase : "",
            where + call);
}

static void add_group(struct source *source, const struct query *query, const struct tui_comm *comm,
                      const struct group *group, struct rows *rows)
{
    const struct signs *signs = signs_of(query);
    const struct member_state *member = group->first;
    char ranks[RANKS_BYTES];
    enum tone tone = tone_of(member->standing);
    struct row *row = rows_add(rows, hash_bytes(comm->id, &member->rank, sizeof member->rank), 1);
    if (row)
        row->state = standing_name(member->standing);
    row_set(row, CELL_WHO, tone, "%s %s", standing_sign(signs, member->standing),
            rankset_brief(&group->ranks, ranks, sizeof ranks));
    if (member->issued)
        row_set(row, CELL_NUMBER, TONE_PLAIN, "#%llu", (unsigned long long)member->issued - 1);
    if (member->behind && member->standing < STANDS_ISSUED)
        row_set(row, CELL_LAG, tone, "-%llu", (unsigned long long)member->behind);
    if (member->process >= 0) {
        set_where(source, query, group, row);
        member_set_place(source, member, rows, row);
    } else {
        row_set(row, CELL_WHERE, TONE_PLAIN, "no call recorded");
    }
    if (row) {
        row->target =
            (struct target){.view = VIEW_RANK, .comm = comm->id, .process = member->process};
        if (member->process < 0)
            row->target.view = -1;
    }
}

static void add_comm(struct source *source, const struct query *query, const struct tui_comm *comm,
                     struct rows *rows)
{
    const struct signs *signs = signs_of(query);
    struct group group[GROUPS_MAX] = {0};
    char marks[4096];
    struct text text = {0};
    int width = query->width - NUMBERS_WIDTH - COUNTS_WIDTH, more;
    strip(comm, signs, rows_clamp(width, STRIP_LEAST, STRIP_MOST), marks, sizeof marks);
    counts(comm, &text);
    char *said = text_take(&text);
    struct row *row = rows_add(rows, comm->id, 0);
    if (row) {
        row->state = "";
        row->fixed = true;
    }
    row_set(row, CELL_WHO, TONE_STRONG, "%s", comm->member->label);
    if (comm->most_issued)
        row_set(row, CELL_NUMBER, TONE_STRONG, "#%llu", (unsigned long long)comm->most_issued - 1);
    row_set(row, CELL_WHERE, tone_of(comm->worst), "%s  %s", marks, said ? said : "");
    if (row)
        row->target = (struct target){.view = VIEW_SEQUENCE,
                                      .comm = comm->id,
                                      .number = (uint64_t)NUMBER_LAST,
                                      .process = -1};
    free(said);
    int groups = find_groups(comm, group, &more);
    for (int i = 0; i < groups; i++) {
        add_group(source, query, comm, &group[i], rows);
        rankset_free(&group[i].ranks);
    }
    if (more) {
        row = rows_add(rows, ~comm->id, 1);
        row_set(row, CELL_WHO, TONE_FAINT, "and %d more", more);
    }
}

static int model_now(struct source *source, struct query *query, struct rows *rows,
                     struct error *err)
{
    struct members members;
    uint64_t worst;
    if (findings_worst_comm(source, &worst, err) < 0 || members_load(&members, source, err) < 0)
        return -1;
    rows->tree = true;
    rows->empty = source->live ? "No communicator yet: nothing called NCCL so far."
                               : "No communicator: nothing called NCCL.";
    if (!source->live && source_is_imported(source))
        rows->empty = "What was imported names no communicator: see the findings (key 2).";
    rows_column(rows, "ranks", 24, false);
    rows_column(rows, "last", 0, true);
    rows_column(rows, "lag", 0, true);
    rows_column_is_minor(rows);
    rows_column(rows, "where they are", 0, false);
    int folded = 0;
    for (int i = 0; i < members.comms; i++)
        if (members.comm[i].id == worst)
            add_comm(source, query, &members.comm[i], rows);
    for (int i = 0, shown = 0; i < members.comms; i++) { /* the worst first */
        const struct tui_comm *comm = &members.comm[i];
        if (comm->id == worst)
            continue;
        bool fold = shown >= COMMS_MOST && comm->worst > STANDS_BEHIND;
        if (fold)
            folded++;
        else
            add_comm(source, query, comm, rows);
        shown += !fold;
    }
    if (folded)
        row_set(rows_add(rows, FOLDED_ID, 0), CELL_WHO, TONE_FAINT,
                "and %d communicators more, in none of which a rank is missing or behind", folded);
    members_free(&members);
    return 0;
}

const struct view view_now = {
    .name = "Now",
    .about = "The state of every rank in each communicator, those that others wait for first.",
    .load = model_now,
    .key = {{"Enter", "the communicator's sequence, or the rank"}},
};
