/* report_stored.c: unites what was found live with what is found again. */
#include "cmd/report/report_stored.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/check.h"
#include "lib/finding/finding_store.h"

static const char *column_text(sqlite3_stmt *row, int column)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    return text ? (const char *)text : "";
}

struct finding *united_findings_add(struct report *report)
{
    struct united_findings *united = &report->united;
    struct finding *more = reallocarray(united->finding, (size_t)united->count + 1, sizeof *more);
    if (!more)
        return NULL;
    united->finding = more;
    more[united->count] = (struct finding){0};
    return &more[united->count++];
}

static struct finding *find_united(const struct report *report, uint64_t fingerprint)
{
    for (int i = 0; i < report->united.count; i++)
        if (report->united.finding[i].fingerprint == fingerprint)
            return &report->united.finding[i];
    return NULL;
}

/* Runs a query with the finding's id. NULL where the database has no such table. */
static sqlite3_stmt *query_of_finding(sqlite3 *db, const char *sql, sqlite3_int64 id)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_int64(rows, 1, id);
    return rows;
}

static struct act *act_of_side(struct finding *finding, sqlite3_stmt *row)
{
    int side = sqlite3_column_int(row, 0);
    if (side < 0 || side >= finding->sides)
        return NULL;
    return strcmp(column_text(row, 1), "now") ? &finding->side[side].act : &finding->side[side].now;
}

static void read_acts(sqlite3 *db, sqlite3_int64 id, struct finding *finding)
{
    sqlite3_stmt *row = query_of_finding(
        db,
        "SELECT side, moment, did, value, rank, number, name, phase FROM finding_act "
        "WHERE finding = ?",
        id);
    while (row && sqlite3_step(row) == SQLITE_ROW) {
        struct act *act = act_of_side(finding, row);
        const struct store_act stored = {.did = column_text(row, 2),
                                         .value = sqlite3_column_int(row, 3),
                                         .rank = sqlite3_column_int(row, 4),
                                         .number = (uint64_t)sqlite3_column_int64(row, 5),
                                         .name = column_text(row, 6),
                                         .phase = column_text(row, 7)};
        const struct act taken = act_of_row(&stored);
        if (act && act_copy(act, &taken) < 0)
            *act = (struct act){.did = DID_OTHER}; /* its words are shown */
    }
    sqlite3_finalize(row);
}

static void read_calls(sqlite3 *db, sqlite3_int64 id, struct finding *finding)
{
    sqlite3_stmt *row = query_of_finding(
        db,
        "SELECT side, moment, role, kind, comm, number, api, arguments, datatype, redop, peer, "
        "size, count, bytes FROM finding_call WHERE finding = ?",
        id);
    while (row && sqlite3_step(row) == SQLITE_ROW) {
        struct act *act = act_of_side(finding, row);
        const struct store_call call = {
            .role = column_text(row, 2),
            .kind = column_text(row, 3),
            .comm = (uint64_t)sqlite3_column_int64(row, 4),
            .number = (uint64_t)sqlite3_column_int64(row, 5),
            .called = {.api = (uint16_t)sqlite3_column_int(row, 6),
                       .arguments = (uint16_t)sqlite3_column_int(row, 7),
                       .datatype = (uint8_t)sqlite3_column_int(row, 8),
                       .redop = (uint8_t)sqlite3_column_int(row, 9),
                       .peer = sqlite3_column_int(row, 10),
                       .size = sqlite3_column_int(row, 11),
                       .count = (uint64_t)sqlite3_column_int64(row, 12),
                       .bytes = (uint64_t)sqlite3_column_int64(row, 13)},
        };
        if (act)
            act_take_call(act, &call);
    }
    sqlite3_finalize(row);
}

static void read_titles(sqlite3 *db, struct finding *finding)
{
    sqlite3_stmt *row = query_of_finding(db, "SELECT comm, title FROM finding_comm", 0);
    while (row && sqlite3_step(row) == SQLITE_ROW)
        for (int i = 0; i < finding->sides; i++) {
            uint64_t comm = (uint64_t)sqlite3_column_int64(row, 0);
            act_take_title(&finding->side[i].act, comm, column_text(row, 1));
            act_take_title(&finding->side[i].now, comm, column_text(row, 1));
        }
    sqlite3_finalize(row);
}

/* Returns 0, or -1 when memory is short. */
static int read_sides(struct report *report, int database, sqlite3_int64 id,
                      struct finding *finding)
{
    bool failed = false;
    sqlite3_stmt *row = query_of_finding(
        trace_database(report->trace, database),
        "SELECT ranks, process, call, phase, \"where\", since_ns, stack, stack_is_address, "
        "where_stack, where_stack_is_address FROM finding_side WHERE finding = ? ORDER BY side",
        id);
    while (row && finding->sides < FINDING_SIDES_MAX && sqlite3_step(row) == SQLITE_ROW) {
        struct finding_side *side = &finding->side[finding->sides++];
        side->process = trace_process_of(report->trace, database, sqlite3_column_int(row, 1));
        side->call = strdup(column_text(row, 2));
        side->phase = strdup(column_text(row, 3));
        side->where = strdup(column_text(row, 4));
        side->since_ns = (uint64_t)sqlite3_column_int64(row, 5);
        side->stack = (uint64_t)sqlite3_column_int64(row, 6);
        side->stack_is_address = sqlite3_column_int(row, 7);
        side->where_stack = (uint64_t)sqlite3_column_int64(row, 8);
        side->where_stack_is_address = sqlite3_column_int(row, 9);
        side->act.did = side->now.did = DID_OTHER;
        errno = 0; /* an earlier version has cut long texts: what they have is taken */
        failed |= rankset_parse(&side->ranks, column_text(row, 0)) < 0 && errno == ENOMEM;
        failed = failed || !side->call || !side->phase || !side->where;
    }
    sqlite3_finalize(row);
    return failed ? -1 : 0;
}

/* A row of finding that is not found again. Returns 0, or -1 when memory is short. */
static int take_stored(struct report *report, int database, sqlite3_stmt *row, enum code code)
{
    sqlite3 *db = trace_database(report->trace, database);
    sqlite3_int64 id = sqlite3_column_int64(row, 0);
    struct finding *finding = united_findings_add(report);
    if (!finding)
        return -1;
    *finding = (struct finding){
        .id = UINT32_MAX - (uint32_t)report->united.count, /* of no finding of the analyzer */
        .code = code_name(code),
        .severity = severity_of_name(column_text(row, 2)),
        .certainty = strcmp(column_text(row, 3), certainty_name(CERTAIN)) ? POSSIBLE : CERTAIN,
        .state = strcmp(column_text(row, 4), "resolved") ? FINDING_OPEN : FINDING_RESOLVED,
        .comm = (uint64_t)sqlite3_column_int64(row, 5),
        .has_number = sqlite3_column_type(row, 6) != SQLITE_NULL,
        .number = (uint64_t)sqlite3_column_int64(row, 6),
        .first_ns = (uint64_t)sqlite3_column_int64(row, 7),
        .last_ns = (uint64_t)sqlite3_column_int64(row, 8),
        .times = (uint64_t)sqlite3_column_int64(row, 9),
        .fingerprint = (uint64_t)sqlite3_column_int64(row, 10),
        .first_fingerprint = (uint64_t)sqlite3_column_int64(row, 10),
        .what = strdup(column_text(row, 11)),
        .todo = strdup(column_text(row, 12)),
    };
    if (!finding->what || !finding->todo || read_sides(report, database, id, finding) < 0)
        return -1;
    read_acts(db, id, finding);
    read_calls(db, id, finding);
    read_titles(db, finding);
    return 0;
}

/* Rests on copies, kernels and ranges, which are the records that are dropped. */
static bool rests_on_dropped(const struct check *check)
{
    return check->family == FAMILY_HAZARD || check->family == FAMILY_DEVICE ||
           check->family == FAMILY_TRAINING || check->family == FAMILY_SPEED;
}

/* Of several hosts each collector saw its own: what it thought of others is not taken from it.
 * Where finished calls are gone, the collector of one host has seen more of them than there is to
 * check again. */
static bool is_taken(const struct report *report, const struct check *check)
{
    bool is_alone = trace_database_count(report->trace) == 1;
    if (report->dropped.calls && is_alone)
        return check->family != FAMILY_TRACE;
    return rests_on_dropped(check) && (check->scope == SCOPE_PROCESS || is_alone);
}

/* Found live by a check of other records, which are all there: shown only if it is not found again.
 * What the trace as a whole shows is not taken from before. */
static bool is_added(const struct report *report, const struct check *check)
{
    return !rests_on_dropped(check) && check->family != FAMILY_TRACE &&
           trace_database_count(report->trace) == 1;
}

struct stored_choice {
    bool (*is_wanted)(const struct report *report, const struct check *check); /* NULL: all are */
    int64_t first_id;
    bool is_each; /* also several with one fingerprint */
};

/* Newest first, so that of several with one fingerprint that one is taken. */
static int read_stored(struct report *report, int database, const struct stored_choice *choice,
                       struct error *err)
{
    sqlite3_stmt *row = NULL;
    static const char sql[] =
        "SELECT id, code, severity, certainty, state, comm, number, first_ns, "
        "last_ns, times, fingerprint, what, todo FROM finding WHERE id >= ? "
        "ORDER BY id DESC";
    if (sqlite3_prepare_v2(trace_database(report->trace, database), sql, -1, &row, NULL) !=
        SQLITE_OK)
        return 0; /* damaged: that is reported elsewhere */
    int result = 0;
    sqlite3_bind_int64(row, 1, choice->first_id);
    while (!result && sqlite3_step(row) == SQLITE_ROW) {
        const struct check *check = check_find(column_text(row, 1));
        uint64_t fingerprint = (uint64_t)sqlite3_column_int64(row, 10);
        if (check && (!choice->is_wanted || choice->is_wanted(report, check)) &&
            (choice->is_each || !find_united(report, fingerprint)))
            result = take_stored(report, database, row, check->code);
    }
    sqlite3_finalize(row);
    return result ? error_set(err, "can't analyse the trace: memory is short") : 0;
}

struct found_again {
    struct report *report;
    bool failed;
};

/* A missing record can look like a fault: whether it is one, the collector saw, if it came to the
 * end. */
static void add_found_again(void *context, const struct finding *finding)
{
    struct found_again *found = context;
    const struct check *check = check_find(finding->code);
    if (check && is_taken(found->report, check) &&
        (rests_on_dropped(check) || trace_complete(found->report->trace) ||
         find_united(found->report, finding->fingerprint)))
        return;
    struct finding *added = united_findings_add(found->report);
    if (!added || finding_copy(added, finding) < 0)
        found->failed = true;
}

static int worst_united_first(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;
    if (a->severity != b->severity)
        return a->severity < b->severity ? -1 : 1;
    if (a->certainty != b->certainty)
        return a->certainty < b->certainty ? -1 : 1;
    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

void united_findings_sort(struct report *report)
{
    if (report->united.count)
        qsort(report->united.finding, (size_t)report->united.count, sizeof *report->united.finding,
              worst_united_first);
}

int stored_findings_unite(struct report *report, struct error *err)
{
    const struct stored_choice taken = {.is_wanted = is_taken}, added = {.is_wanted = is_added};
    struct found_again found = {.report = report};
    report->dropped = trace_dropped(report->trace);
    if (!report->dropped.records)
        return 0;
    report->is_united = true;
    for (int i = 0; i < trace_database_count(report->trace); i++)
        if (read_stored(report, i, &taken, err) < 0)
            return -1;
    analyzer_visit_findings(report->analyzer, add_found_again, &found);
    if (found.failed)
        return error_set(err, "can't analyse the trace: memory is short");
    for (int i = 0; i < trace_database_count(report->trace); i++)
        if (read_stored(report, i, &added, err) < 0)
            return -1;
    united_findings_sort(report);
    return 0;
}

int stored_findings_take(struct report *report, struct error *err)
{
    const struct stored_choice choice = {.first_id = FINDING_TAKEN_FIRST, .is_each = true};
    int result = 0;
    for (int i = 0; i < trace_database_count(report->trace) && result == 0; i++)
        result = read_stored(report, i, &choice, err);
    for (int i = 0; i < report->united.count && result == 0; i++) {
        uint32_t id = 0;
        if (analyzer_take_finding(report->analyzer, &report->united.finding[i], &id) < 0)
            result = error_set(err, "can't analyse the trace: memory is short");
    }
    united_findings_free(&report->united);
    return result;
}

void united_findings_free(struct united_findings *united)
{
    for (int i = 0; i < united->count; i++)
        finding_free(&united->finding[i]);
    free(united->finding);
    *united = (struct united_findings){0};
}
