/* model_speed.c: who makes others wait (table speed_state): own time beyond the peers', why, and
 * since when; ranks that stand alike are one row. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/trace/names.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/view.h"

enum { CELL_RANKS, CELL_LAG, CELL_SHARE, CELL_KIND, CELL_TREND, CELL_WAITS, CELL_COMM };
enum { SINCE_SPEED = 9 }; /* the minor schema version that has speed_state */
enum { KIND_BYTES = 24, CODE_BYTES = 8, TREND_PARTS = 16, TREND_LEVELS = 8, LEVEL_BYTES = 4 };
enum {
    LEAST_PERCENT = 3, /* of an iteration: less is noise, and such ranks are one row */
    FULL_PERCENT = 30, /* the highest mark */
    ALIKE_PERCENT = 80 /* ranks that lag by so much of the worst of their row are in it */
};
enum { WIDE = 100, NOTE_LEAST = 70, RANKS_WIDE = 30, RANKS_NARROW = 12 }; /* columns */

/* A row of the table, then of the view: the ranks that stand alike. */
struct lag_group {
    uint64_t comm, since, period;
    char kind[KIND_BYTES], code[CODE_BYTES];
    double lag_ns, wait_ns, length_ns; /* lag_ns: of the worst */
    int process, rank, count;          /* of the worst; ranks */
    struct rankset ranks;
    int trend[TREND_PARTS], parts; /* percent of an iteration, the worst */
};

struct lag_groups {
    struct lag_group *group;
    int count;
    int64_t first, last; /* iterations */
    double length_ns;    /* of all rows */
    bool coarse;
};

static double lag_share(const struct lag_group *group)
{
    return group->length_ns > 0 ? 100 * group->lag_ns / group->length_ns : 0;
}

static bool is_plain_cell(const struct lag_group *group)
{
    return !*group->kind && lag_share(group) < LEAST_PERCENT;
}

static void read_lag_trend(struct lag_group *group, const char *text)
{
    char *end;
    for (group->parts = 0; group->parts < TREND_PARTS; text = end + 1) {
        group->trend[group->parts] = (int)strtol(text, &end, 10);
        if (end == text)
            return;
        group->parts++;
        if (*end != ',')
            return;
    }
}

static int take_standing(struct lag_groups *groups, const struct cursor *row)
{
    if (!ARRAY_ADD(groups->group, groups->count))
        return -1;
    struct lag_group *group = &groups->group[groups->count++];
    *group = (struct lag_group){.rank = (int)cursor_number(row, 0),
                                .process = cursor_process(row, 1),
                                .comm = (uint64_t)cursor_number(row, 2),
                                .lag_ns = (double)cursor_number(row, 3),
                                .wait_ns = (double)cursor_number(row, 4),
                                .length_ns = (double)cursor_number(row, 5),
                                .since = (uint64_t)cursor_number(row, 6),
                                .period = (uint64_t)cursor_number(row, 7),
                                .count = 1};
    int64_t first = cursor_number(row, 8), last = cursor_number(row, 9);
    groups->first = groups->count == 1 || first < groups->first ? first : groups->first;
    groups->last = groups->count == 1 || last > groups->last ? last : groups->last;
    groups->coarse |= cursor_number(row, 10);
    groups->length_ns += group->length_ns;
    snprintf(group->kind, sizeof group->kind, "%s", cursor_text(row, 11));
    snprintf(group->code, sizeof group->code, "%s", cursor_text(row, 12));
    read_lag_trend(group, cursor_text(row, 13));
    return rankset_add(&group->ranks, group->rank < 0 ? 0 : group->rank);
}

static int load_standings(struct lag_groups *groups, struct source *source, struct error *err)
{
    static const char sql[] =
        "SELECT shown_rank, process, comm, lag_ns, wait_ns, length_ns, since, period, first, last, "
        "coarse, kind, code, trend FROM speed_state";
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    int result;
    while ((result = cursor_next(&row, err)) == 1)
        if (take_standing(groups, &row)) {
            cursor_end(&row);
            return error_memory(err, "can't show the speed");
        }
    return result;
}

static int compare_lags(const struct lag_group *a, const struct lag_group *b)
{
    if (a->lag_ns != b->lag_ns)
        return a->lag_ns > b->lag_ns ? -1 : 1;
    return a->rank - b->rank;
}

/* Those that may be one row next to each other, the worst of them first. */
static int by_likeness(const void *left, const void *right)
{
    const struct lag_group *a = left, *b = right;
    int kind = strcmp(b->kind, a->kind);
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    return kind ? kind : compare_lags(a, b);
}

static int by_harm(const void *left, const void *right)
{
    const struct lag_group *a = left, *b = right;
    if (!*a->kind != !*b->kind)
        return *a->kind ? -1 : 1;
    return compare_lags(a, b);
}

static bool stands_alike(const struct lag_group *worst, const struct lag_group *group)
{
    struct lag_group one = *worst;
    one.length_ns /= one.count;
    if (worst->comm != group->comm || strcmp(worst->kind, group->kind) != 0)
        return false;
    return is_plain_cell(&one) || 100 * group->lag_ns >= ALIKE_PERCENT * worst->lag_ns;
}

static int join_lag_group(struct lag_group *worst, struct lag_group *group)
{
    for (int i = 0; i < group->parts && i < worst->parts; i++)
        if (worst->trend[i] < group->trend[i])
            worst->trend[i] = group->trend[i];
    worst->wait_ns += group->wait_ns;
    worst->length_ns += group->length_ns;
    worst->count++;
    int result = rankset_unite(&worst->ranks, &group->ranks);
    rankset_free(&group->ranks);
    return result;
}

/* Makes rows of the view of the rows of the table. Waiting and lengths become means. */
static int fold_lag_groups(struct lag_groups *groups, struct error *err)
{
    int kept = 0, status = 0;
    if (!groups->count)
        return 0;
    qsort(groups->group, (size_t)groups->count, sizeof *groups->group, by_likeness);
    for (int i = 0; i < groups->count; i++) {
        struct lag_group *group = &groups->group[i], *worst = kept ? &group[kept - 1 - i] : NULL;
        if (worst && stands_alike(worst, group))
            status |= join_lag_group(worst, group);
        else
            groups->group[kept++] = *group;
    }
    groups->count = kept;
    for (int i = 0; i < kept; i++) {
        groups->group[i].wait_ns /= groups->group[i].count;
        groups->group[i].length_ns /= groups->group[i].count;
    }
    qsort(groups->group, (size_t)kept, sizeof *groups->group, by_harm);
    return status ? error_memory(err, "can't show the speed") : 0;
}

/* What the job would be without each cause, as `report --speed` has it, on one line. */
static int add_waterfall(struct source *source, struct rows *rows, double length_ns,
                         struct error *err)
{
    static const char sql[] = "SELECT DISTINCT kind, lag_ns, since, period FROM speed_state "
                              "WHERE kind <> '' ORDER BY lag_ns DESC LIMIT 4";
    struct cursor row = cursor_new(source->trace, sql, NULL, 0);
    char text[256] = "";
    double left_ns = length_ns;
    int result;
    while ((result = cursor_next(&row, err)) == 1) {
        size_t length = strlen(text);
        left_ns = fmax(left_ns - (double)cursor_number(&row, 1), 0);
        snprintf(text + length, sizeof text - length, "%s%s %.1f ms", *text ? ", " : "",
                 cursor_text(&row, 0), left_ns / 1e6);
    }
    if (*text && !result && left_ns > 0)
        rows_line(rows, TONE_WARNING, "without %s: %.2f times as fast", text, length_ns / left_ns);
    return result;
}

/* --- as text */

/* `step` parts of the trend are one mark, that of the worst of them. */
static const char *trend_text(const struct lag_group *group, bool ascii, int step,
                              char text[TREND_PARTS * LEVEL_BYTES])
{
    static const char *const marks[2][TREND_LEVELS + 1] = {
        {"·", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
        {".", ":", "-", "=", "+", "*", "o", "%", "#"}};
    text[0] = '\0';
    for (int i = 0; i < group->parts; i += step) {
        int percent = group->trend[i];
        for (int k = i + 1; k < i + step && k < group->parts; k++)
            percent = group->trend[k] > percent ? group->trend[k] : percent;
        int above = percent - LEAST_PERCENT;
        int level = 1 + above * (TREND_LEVELS - 1) / (FULL_PERCENT - LEAST_PERCENT);
        level = above < 0 ? 0 : rows_clamp(level, 1, TREND_LEVELS);
        strcat(text, marks[ascii][level]);
    }
    return text;
}

/* The finding that names the ranks; 0 if there is none. */
static uint32_t find_lag_finding(const struct findings *findings, const struct lag_group *group)
{
    for (int i = 0; *group->code && i < findings->faults.count; i++) {
        const struct fault_group *fault = &findings->faults.fault[i];
        if (!strcmp(code_name(fault->finding->code), group->code) &&
            finding_has_rank(fault, group->rank))
            return fault->finding->id;
    }
    return 0;
}

static const char *lag_comm_label(const struct members *members, uint64_t id,
                                  char label[COMM_LABEL_BYTES])
{
    for (int i = 0; i < members->comms; i++)
        if (members->comm[i].id == id)
            return members->comm[i].member->label;
    comm_name(id, label);
    return label;
}

static void add_lag_group(const struct lag_group *group, const struct query *query,
                          const struct members *members, const struct findings *findings,
                          struct rows *rows)
{
    char ranks[128], label[COMM_LABEL_BYTES], trend[TREND_PARTS * LEVEL_BYTES];
    uint32_t finding = find_lag_finding(findings, group);
    uint64_t kind = 0;
    for (const char *c = group->code; *c; c++)
        kind = kind * 31 + (unsigned char)*c;
    struct row *row = rows_add(rows, (kind << 32) + (uint64_t)group->rank + 1, 0);
    enum tone tone = is_plain_cell(group) ? TONE_FAINT : TONE_PLAIN;
    if (*group->kind)
        tone = TONE_WARNING;
    double wait = group->length_ns > 0 ? 100 * group->wait_ns / group->length_ns : 0;
    row_set(row, CELL_RANKS, tone, "%s", rankset_brief(&group->ranks, ranks, sizeof ranks));
    row_set(row, CELL_LAG, tone, "%.1f", fmax(group->lag_ns / 1e6, 0));
    row_set(row, CELL_SHARE, tone, "%.0f%%", fmax(lag_share(group), 0));
    if (!*group->kind && group->count > 1)
        row_set(row, CELL_KIND, tone, "%d ranks", group->count);
    else if (group->since)
        row_set(row, CELL_KIND, tone, "%s since %llu", group->kind,
                (unsigned long long)group->since);
    else if (group->period)
        row_set(row, CELL_KIND, tone, "%s every %llu", group->kind,
                (unsigned long long)group->period);
    else
        row_set(row, CELL_KIND, tone, "%s", group->kind);
    row_set(row, CELL_TREND, tone, "%s",
            trend_text(group, query->ascii, query->width < WIDE ? 2 : 1, trend));
    row_set(row, CELL_WAITS, tone, "%.0f%%", wait);
    row_set(row, CELL_COMM, TONE_PLAIN, "%s", lag_comm_label(members, group->comm, label));
    if (row && finding)
        row->target = (struct target){.view = VIEW_FINDING, .finding = finding, .process = -1};
    else if (row && group->process >= 0)
        row->target = (struct target){.view = VIEW_RANK, .process = group->process};
}

static int model_speed(struct source *source, struct query *query, struct rows *rows,
                       struct error *err)
{
    struct lag_groups groups = {0};
    struct members members = {0};
    struct findings findings = {0};
    rows->empty = source->live ? "Collecting: speed is judged from 20 iterations on."
                               : "Not known: this takes 20 iterations of two ranks, with times.";
    rows_column(rows, "ranks", query->width < WIDE ? RANKS_NARROW : RANKS_WIDE, false);
    rows_column(rows, "lag ms", 0, true);
    rows_column(rows, "share", 0, true);
    rows_column(rows, "kind", 0, false);
    rows_column(rows, "trend", 0, false);
    rows_column(rows, "waits", 0, true);
    rows_column(rows, "among", 0, false);
    int result = load_standings(&groups, source, err);
    int standings = groups.count;
    if (result == 0)
        result = fold_lag_groups(&groups, err);
    if (result == 0)
        result = members_load(&members, source, err);
    if (result == 0)
        result = tui_findings_load(&findings, source, err);
    if (result == 0 && groups.count)
        rows_line(
            rows, TONE_FAINT, "iterations %lld-%lld, %.1f ms on average%s", (long long)groups.first,
            (long long)groups.last, groups.length_ns / standings / 1e6,
            groups.coarse && query->width >= NOTE_LEAST ? "; times known to a millisecond" : "");
    if (result == 0 && groups.count && query->width >= NOTE_LEAST)
        result = add_waterfall(source, rows, groups.length_ns / standings, err);
    for (int i = 0; i < groups.count; i++) {
        if (result == 0)
            add_lag_group(&groups.group[i], query, &members, &findings, rows);
        rankset_free(&groups.group[i].ranks);
    }
    free(groups.group);
    members_free(&members);
    tui_findings_free(&findings);
    return result;
}

const struct view view_speed = {
    .name = "Speed",
    .about =
        "Who makes others wait: own time beyond the peers', why, and since when. The trend has the "
        "iterations from left to right: a low mark is below 3% of an iteration, a full one 30% "
        "and more.",
    .load = model_speed,
    .key = {{"Enter", "why: the finding, or else the rank"}},
};
