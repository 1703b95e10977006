/* model_timeline.c: when the operations of one communicator were in flight, a line per rank (of
 * more ranks than fit, per equal bar): waiting for its stream or for others, and running, darker
 * where it was so for more of the time. Ends come from what the collector saw of the GPU's
 * progress, every few milliseconds. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/rankset.h"
#include "lib/base/text.h"
#include "lib/base/moment.h"
#include "tui/findings.h"
#include "tui/members.h"
#include "tui/timeline_cells.h"
#include "tui/view.h"
#include "tui/width.h"

enum { CELL_RANK, CELL_BAR };
#define MISSING_MARK "! "
enum {
    LABEL_WIDTH = 10,
    LABEL_MOST = 24,
    LEGEND_LEAST = 75,
    HEAD_BYTES = 512,
    COLUMNS_MAX = 1024,
    PENDING_MAX = 4096,
    SLOTS_MAX = 1024,
    EVENTS_MOST = 400000
};
/* What is shown at first: iterations of the job, or where these are not known a time. */
enum { USUAL_ITERATIONS = 20 };
static const uint64_t usual_ns = 10000000000;
/* Rows are numbered block by block, as the collector drained the rings: their times are out of
 * order by as much as it was late. */
static const uint64_t disorder_ns = 2000000000;

/* An operation that is not known to be done. */
struct pending_bar {
    int process;
    uint32_t slot;
    uint64_t launch, issued_ns, started_ns;
    int line;
};

/* How far a slot was when the collector looked last: that can be stored before the call that it is
 * about. */
struct reached {
    int process;
    uint32_t slot;
    uint64_t started, done;
};

struct timeline {
    const struct tui_comm *comm;
    struct cells cells;
    struct pending_bar *pending;
    int pendings;
    struct reached reached[SLOTS_MAX];
    int slots;
};

static void finish(struct timeline *timeline, const struct pending_bar *pending, uint64_t done_ns)
{
    uint64_t started_ns = pending->started_ns ? pending->started_ns : done_ns;
    cells_fill(&timeline->cells, pending->line, pending->issued_ns, started_ns, LEVEL_ISSUED);
    if (pending->started_ns)
        cells_fill(&timeline->cells, pending->line, pending->started_ns, done_ns, LEVEL_STARTED);
}

static int line_of(const struct timeline *timeline, int rank)
{
    const struct member_state *member = members_rank(timeline->comm, rank);
    return member ? (int)(member - timeline->comm->member) : -1;
}

/* The slot's place, made if there is room; NULL if not. */
static struct reached *reached_of(struct timeline *timeline, int process, uint32_t slot)
{
    for (int i = 0; i < timeline->slots; i++)
        if (timeline->reached[i].process == process && timeline->reached[i].slot == slot)
            return &timeline->reached[i];
    if (timeline->slots == SLOTS_MAX)
        return NULL;
    timeline->reached[timeline->slots] = (struct reached){.process = process, .slot = slot};
    return &timeline->reached[timeline->slots++];
}

static void take_timeline_operation(struct timeline *timeline, int process,
                                    const struct cursor *row, uint64_t time_ns)
{
    uint64_t slot_and_rank = (uint64_t)cursor_number(row, 4);
    int line = line_of(timeline, (int)(int32_t)(slot_and_rank >> 32));
    struct pending_bar pending = {.process = process,
                                  .slot = (uint32_t)slot_and_rank,
                                  .launch = (uint64_t)cursor_number(row, 5),
                                  .issued_ns = time_ns,
                                  .line = line};
    const struct reached *reached = reached_of(timeline, process, pending.slot);
    if (line < 0)
        return;
    if (reached && pending.launch <= reached->started)
        pending.started_ns = time_ns;
    if (reached && pending.launch <= reached->done)
        finish(timeline, &pending, time_ns);
    else if (timeline->pendings < PENDING_MAX)
        timeline->pending[timeline->pendings++] = pending;
}

static void take_progress(struct timeline *timeline, int process, const struct cursor *row,
                          uint64_t time_ns)
{
    uint32_t slot = (uint32_t)cursor_number(row, 3);
    uint64_t started = (uint64_t)cursor_number(row, 6), done = (uint64_t)cursor_number(row, 7);
    struct reached *reached = reached_of(timeline, process, slot);
    int kept = 0;
    if (reached)
        *reached = (struct reached){process, slot, started, done};
    for (int i = 0; i < timeline->pendings; i++) {
        struct pending_bar *pending = &timeline->pending[i];
        if (pending->process == process && pending->slot == slot && pending->launch <= started &&
            !pending->started_ns)
            pending->started_ns = time_ns;
        if (pending->process == process && pending->slot == slot && pending->launch <= done)
            finish(timeline, pending, time_ns);
        else
            timeline->pending[kept++] = *pending;
    }
    timeline->pendings = kept;
}

/* A member that others wait for has no operation of its own to show: the time that they have waited
 * is marked. `waiting_ns` is when the first of them began to. */
static void fill_missing(struct timeline *timeline, uint64_t waiting_ns)
{
    for (int i = 0; i < timeline->comm->members && waiting_ns != UINT64_MAX; i++)
        if (timeline->comm->member[i].standing == STANDS_MISSING)
            cells_fill(&timeline->cells, i, waiting_ns, timeline->cells.end_ns, LEVEL_MISSING);
}

/* When the member's oldest operation that was not done at the end of the rows was called; 0: none.
 */
static uint64_t pending_since(const struct timeline *timeline, int line)
{
    uint64_t since_ns = 0;
    for (int i = 0; i < timeline->pendings; i++)
        if (timeline->pending[i].line == line &&
            (since_ns == 0 || timeline->pending[i].issued_ns < since_ns))
            since_ns = timeline->pending[i].issued_ns;
    return since_ns;
}

/* What is in flight now may have been called long before the rows that were read: then the member's
 * state knows since when it waits, or until when it did. */
static void fill_in_flight(struct timeline *timeline, uint64_t now_ns)
{
    uint64_t waiting_ns = UINT64_MAX;
    if (timeline->cells.end_ns + disorder_ns < now_ns) /* a stretch of the past */
        return;
    for (int i = 0; i < timeline->comm->members; i++) {
        const struct member_state *member = &timeline->comm->member[i];
        uint64_t since_ns = pending_since(timeline, i);
        if (member->done >= member->issued)
            continue;
        if (since_ns == 0 && member->since_ns != 0) {
            since_ns = member->ended ? timeline->cells.begin_ns : member->since_ns;
            uint64_t until_ns = member->ended ? member->since_ns : timeline->cells.end_ns;
            cells_fill(&timeline->cells, i, since_ns, until_ns,
                       member->started > member->done ? LEVEL_STARTED : LEVEL_ISSUED);
        }
        if (since_ns != 0 && since_ns < waiting_ns)
            waiting_ns = since_ns;
    }
    fill_missing(timeline, waiting_ns);
}

/* Rows of the time wanted, and of some before it so that what was in flight then is known. */
static int read_events(struct source *source, struct timeline *timeline, struct error *err)
{
    static const char sql[] =
        "WITH RECURSIVE span(low, high) AS (SELECT 0, max(seq) FROM event UNION ALL "
        "SELECT CASE WHEN (SELECT e.time_ns + p.realtime_ns - p.monotonic_ns FROM event e JOIN "
        "process p ON p.id = e.process "
        "                  WHERE e.seq >= (low + high) / 2 ORDER BY e.seq LIMIT 1) < ?2 THEN (low "
        "+ high) / 2 ELSE low "
        "END, "
        "       CASE WHEN (SELECT e.time_ns + p.realtime_ns - p.monotonic_ns FROM event e JOIN "
        "process p ON p.id = e.process "
        "                  WHERE e.seq >= (low + high) / 2 ORDER BY e.seq LIMIT 1) < ?2 THEN high "
        "ELSE (low + high) / 2 "
        "END "
        "FROM span WHERE high - low > 1) "
        "SELECT e.process, e.api, e.time_ns + p.realtime_ns - p.monotonic_ns, e.w0, e.w8, e.w9, "
        "e.w1, e.w2 "
        "FROM event e JOIN process p ON p.id = e.process WHERE e.seq > (SELECT max(low) - 2000 "
        "FROM span) "
        "AND ((e.phase = 1 AND e.w0 = ?1 AND e.api IN (SELECT number FROM api WHERE class = "
        "'collective')) "
        "     OR e.api = (SELECT number FROM api WHERE name = 'notice_progress')) ORDER BY e.seq "
        "LIMIT ?3";
    const int64_t parameter[] = {(int64_t)timeline->comm->id,
                                 (int64_t)(timeline->cells.begin_ns - disorder_ns), EVENTS_MOST};
    struct cursor row = cursor_new(source->trace, sql, parameter, 3);
    int result;
    while ((result = cursor_next(&row, err)) == 1) {
        int process = cursor_process(&row, 0);
        uint64_t time_ns = (uint64_t)cursor_number(&row, 2);
        if (cursor_number(&row, 1) == API_notice_progress)
            take_progress(timeline, process, &row, time_ns);
        else if (time_ns <= timeline->cells.end_ns)
            take_timeline_operation(timeline, process, &row, time_ns);
        if (time_ns > timeline->cells.end_ns + disorder_ns && timeline->pendings == 0) {
            cursor_end(&row);
            return 0;
        }
    }
    for (int i = 0; i < timeline->pendings; i++) /* in flight to the end */
        finish(timeline, &timeline->pending[i], timeline->cells.end_ns);
    return result;
}

/* A member's bar, for putting equal ones together. */
struct bar {
    const uint8_t *mark;
    int width, member;
    bool missing;
};

static int bar_compare(const struct bar *a, const struct bar *b)
{
    if (a->missing != b->missing)
        return a->missing ? -1 : 1;
    return memcmp(a->mark, b->mark, (size_t)a->width);
}

static int bar_equal_beside(const void *left, const void *right)
{
    int order = bar_compare(left, right);
    return order ? order : ((const struct bar *)left)->member - ((const struct bar *)right)->member;
}

static int bar_by_member(const void *left, const void *right)
{
    const struct bar *a = left, *b = right;
    return a->missing != b->missing ? b->missing - a->missing : a->member - b->member;
}

static void add_bar(const struct query *query, const struct timeline *timeline,
                    const struct bar *bar, int count, struct rows *rows)
{
    const struct member_state *member = &timeline->comm->member[bar->member];
    const char *const *marks = cells_marks(query->ascii);
    struct text text = {0};
    struct rankset ranks = {0};
    char label[LABEL_MOST + 1];
    for (int i = 0; i < timeline->cells.width; i++)
        text_add(&text, "%s", marks[bar->mark[i]]);
    for (int i = 0; i < count; i++)
        rankset_add(&ranks, timeline->comm->member[bar[i].member].shown_rank);
    char *drawn = text_take(&text);
    struct row *row = rows_add(rows, (uint64_t)member->rank + 1, 0);
    row_set(row, CELL_RANK, bar->missing ? TONE_ERROR : TONE_STRONG, "%s%s",
            bar->missing ? MISSING_MARK : "", rankset_brief(&ranks, label, sizeof label));
    row_set(row, CELL_BAR, bar->missing ? TONE_ERROR : TONE_PLAIN, "%s", drawn ? drawn : "");
    if (row)
        row->target = (struct target){.view = member->process < 0 ? -1 : VIEW_RANK,
                                      .process = member->process};
    rankset_free(&ranks);
    free(drawn);
}

/* More than the screen has room for. */
static bool are_many(const struct query *query, const struct tui_comm *comm)
{
    return comm->members > query_room(query);
}

/* A line per rank, or where these do not fit one per equal bar; those that are missing first. */
static int add_bars(const struct query *query, const struct timeline *timeline, struct rows *rows)
{
    int members = timeline->comm->members, count;
    bool many = are_many(query, timeline->comm);
    struct bar *bar = calloc((size_t)members + 1, sizeof *bar);
    if (!bar)
        return -1;
    for (int i = 0; i < members; i++)
        bar[i] = (struct bar){.mark = cells_line(&timeline->cells, i),
                              .width = timeline->cells.width,
                              .member = i,
                              .missing = timeline->comm->member[i].standing <= STANDS_EXITED};
    qsort(bar, (size_t)members, sizeof *bar, many ? bar_equal_beside : bar_by_member);
    for (int i = 0; i < members; i += count) {
        for (count = 1; many && i + count < members && !bar_compare(&bar[i], &bar[i + count]);)
            count++;
        add_bar(query, timeline, &bar[i], count, rows);
    }
    free(bar);
    return 0;
}

static int draw_timeline(struct source *source, const struct query *query,
                         struct timeline *timeline, struct rows *rows, struct error *err)
{
    timeline->pending = calloc(PENDING_MAX, sizeof *timeline->pending);
    int result = cells_make(&timeline->cells) == 0 && timeline->pending
                     ? read_events(source, timeline, err)
                     : error_memory(err, "can't show the timeline");
    if (result == 0) {
        fill_in_flight(timeline, source->now_ns);
        cells_set_marks(&timeline->cells);
    }
    /* Nothing was called on it, as where a rank is missing while it is set up. */
    bool unused = result == 0 && !timeline->comm->most_issued && cells_are_empty(&timeline->cells);
    if (result == 0 && !unused && add_bars(query, timeline, rows) < 0)
        result = error_memory(err, "can't show the timeline");
    cells_free(&timeline->cells);
    free(timeline->pending);
    return result;
}

/* How long the usual iterations take; 0: not known. */
static int iterations_ns(struct source *source, uint64_t *span_ns, struct error *err)
{
    struct cursor row =
        cursor_new(source->trace, "SELECT max(length_ns) FROM speed_state", NULL, 0);
    int result;
    *span_ns = 0;
    while ((result = cursor_next(&row, err)) == 1)
        if (USUAL_ITERATIONS * (uint64_t)cursor_number(&row, 0) > *span_ns)
            *span_ns = USUAL_ITERATIONS * (uint64_t)cursor_number(&row, 0);
    return result;
}

/* Since when members wait that wait now; the present if none does. */
static uint64_t moved_until_ns(const struct source *source, const struct tui_comm *comm)
{
    uint64_t until_ns = source->now_ns;
    for (int i = 0; i < comm->members; i++) {
        const struct member_state *member = &comm->member[i];
        if (member->done < member->issued && member->since_ns && member->since_ns < until_ns)
            until_ns = member->since_ns;
    }
    return until_ns;
}

/* The last iterations before the job stood still, and what came after them. */
static int usual_begin_ns(struct source *source, const struct tui_comm *comm, uint64_t first_ns,
                          uint64_t *begin_ns, struct error *err)
{
    uint64_t span_ns, until_ns = moved_until_ns(source, comm);
    int result = iterations_ns(source, &span_ns, err);
    span_ns = span_ns ? span_ns : usual_ns;
    *begin_ns = first_ns + span_ns < until_ns ? until_ns - span_ns : first_ns;
    return result;
}

static int first_event_ns(struct source *source, uint64_t *first_ns, struct error *err)
{
    struct cursor row =
        cursor_new(source->trace,
                   "SELECT e.time_ns + p.realtime_ns - p.monotonic_ns FROM event e JOIN process p "
                   "ON p.id = e.process WHERE e.seq = (SELECT min(seq) FROM event)",
                   NULL, 0);
    int result;
    *first_ns = source->now_ns;
    while ((result = cursor_next(&row, err)) == 1)
        if ((uint64_t)cursor_number(&row, 0) < *first_ns)
            *first_ns = (uint64_t)cursor_number(&row, 0);
    return result;
}

/* Which communicator and times; the end and the legend are left out where they would be cut. */
static const char *head_of(const struct source *source, const struct query *query,
                           const struct tui_comm *comm, char head[HEAD_BYTES])
{
    char span[64], to[64];
    moment_duration(query->end_ns - query->begin_ns, span, sizeof span);
    moment_clock(query->end_ns, source->now_ns, to, sizeof to);
    snprintf(head, HEAD_BYTES, "%s, %s until %s%s", comm->member->label, span, to,
             query->width < LEGEND_LEAST ? "" : cells_legend(query->ascii));
    if (width_of(head) > query->width)
        snprintf(head, HEAD_BYTES, "%s, %s", comm->member->label, span);
    return head;
}

static int model_timeline(struct source *source, struct query *query, struct rows *rows,
                          struct error *err)
{
    struct members members;
    uint64_t first_ns;
    char head[HEAD_BYTES];
    if ((!query->comm && findings_worst_comm(source, &query->comm, err) < 0) ||
        members_load(&members, source, err) < 0)
        return -1;
    const struct tui_comm *comm = members_comm(&members, query->comm, query->comm_step);
    query->comm_step = 0;
    rows->empty = "No collective on this communicator.";
    bool many = comm && are_many(query, comm);
    int label = many ? rows_clamp(query->width / 4, LABEL_WIDTH, LABEL_MOST) : LABEL_WIDTH;
    rows_column(rows, many ? "ranks" : "rank", many ? label - ROWS_GAP : 0, !many);
    rows_column(rows, "", 0, false);
    int result = comm ? first_event_ns(source, &first_ns, err) : 0;
    if (comm && result == 0) {
        query->comm = comm->id;
        if (!query->end_ns) {
            query->end_ns = source->now_ns;
            bool all = query->begin_ns == 1;
            query->begin_ns = first_ns;
            if (!all)
                result = usual_begin_ns(source, comm, first_ns, &query->begin_ns, err);
        }
        if (query->end_ns <= query->begin_ns)
            query->end_ns = query->begin_ns + 1000000;
        int width = query->width - label;
        struct timeline timeline = {.comm = comm,
                                    .cells = {.begin_ns = query->begin_ns,
                                              .end_ns = query->end_ns,
                                              .lines = comm->members,
                                              .width = rows_clamp(width, 16, COLUMNS_MAX)}};
        rows_paragraph(rows, TONE_STRONG, query->width, head_of(source, query, comm, head));
        result = draw_timeline(source, query, &timeline, rows, err);
    }
    members_free(&members);
    return result;
}

const struct view view_timeline = {
    .name = "Timeline",
    .about = "Operations in flight over time, a line per rank; of many ranks one per equal bar.",
    .load = model_timeline,
    .key = {{"+ -", "closer, wider"},
            {"< >", "earlier, later"},
            {"c C", "next, previous communicator"},
            {"0", "all of it"}},
};
