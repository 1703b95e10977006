/* kineto_stage.c: sorts the events of one Kineto file by time and joins them with their kernels. */
#include "lib/import/kineto_stage.h"

#include <sqlite3.h>
#include <stdlib.h>

struct kineto_stage {
    sqlite3 *db;
    sqlite3_stmt *call, *mark, *kernel, *launch, *name, *work;
    int64_t unnamed; /* calls without an "External id": numbers below 0 stand for them */
};

/* One thread uses it. */
enum { STORE_FLAGS = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX };

enum { MARK_UNEVEN = ROW_WORK + 1 }; /* 6 in the queries below */

static const char schema[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE; PRAGMA "
    "cache_size=-8192;"
    "CREATE TABLE call(ts INTEGER, dur INTEGER, tid INTEGER, external INTEGER, collective INTEGER, "
    "grp INTEGER, n_in INTEGER,"
    " n_out INTEGER, rank INTEGER, seq INTEGER, send INTEGER, recv INTEGER, datatype INTEGER, "
    "split INTEGER);"
    "CREATE TABLE mark(ts INTEGER, tid INTEGER, kind INTEGER);"
    "CREATE TABLE found(external INTEGER, correlation INTEGER, ts INTEGER, finish INTEGER, device "
    "INTEGER);"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
    "CREATE TABLE work(ts INTEGER, finish INTEGER, name INTEGER);"
    "CREATE TABLE launch(correlation INTEGER PRIMARY KEY, tid INTEGER, ts INTEGER);"
    "BEGIN";

/* A call can have several kernels: from the first one's begin to the last one's end. */
static const char joins[] =
    "CREATE INDEX call_external ON call(external); CREATE INDEX call_tid ON call(tid, ts);"
    "CREATE TABLE uneven(tid INTEGER, ts INTEGER); INSERT INTO uneven SELECT tid, ts FROM mark "
    "WHERE kind = 6;"
    "DELETE FROM mark WHERE kind = 6; CREATE INDEX uneven_tid ON uneven(tid, ts);"
    "UPDATE call SET split = 1 WHERE EXISTS (SELECT 1 FROM uneven u WHERE u.tid = call.tid AND "
    "u.ts BETWEEN call.ts AND call.ts + call.dur);"
    "UPDATE found SET external = coalesce((SELECT CASE WHEN c.ts + c.dur >= l.ts THEN c.external "
    "END FROM launch l, call c"
    "  WHERE l.correlation = found.correlation AND c.tid = l.tid AND c.ts <= l.ts ORDER BY c.ts "
    "DESC LIMIT 1), external)"
    " WHERE external = correlation OR NOT EXISTS (SELECT 1 FROM call WHERE call.external = "
    "found.external);"
    "CREATE TABLE kernel(external INTEGER PRIMARY KEY, ts INTEGER, finish INTEGER, device INTEGER);"
    "INSERT INTO kernel SELECT external, min(ts), max(finish), max(device) FROM found"
    " WHERE external IN (SELECT external FROM call) GROUP BY external";

/* A call holds another one if the next of its thread begins before it ends. Clocks of CPU and GPU
 * differ a little: no kernel begins before its call. */
static const char in_order[] =
    "SELECT 0 AS kind, c.ts AS ts, c.tid, c.external, c.collective, c.grp, c.n_in, c.n_out, "
    "c.rank, c.seq, c.send, c.recv,"
    " c.datatype, c.split, ifnull(c.next < c.ts + c.dur, 0), k.external IS NOT NULL, k.device, 0, "
    "NULL "
    "FROM (SELECT *, lead(ts) OVER (PARTITION BY tid ORDER BY ts, dur DESC) AS next FROM call) c"
    " LEFT JOIN kernel k ON k.external = c.external "
    "UNION ALL SELECT kind, ts, tid, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL FROM "
    "mark "
    "UNION ALL SELECT 5, finish, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, w.ts, n.text"
    " FROM work w JOIN name n ON n.id = w.name "
    "UNION ALL SELECT 3, max(k.ts, c.ts), 0, k.external, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
    "0, NULL"
    " FROM call c JOIN kernel k ON k.external = c.external "
    "UNION ALL SELECT 4, max(k.finish, c.ts), 0, k.external, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
    "0, "
    "0, NULL"
    " FROM call c JOIN kernel k ON k.external = c.external ORDER BY 2, 1";

static int fail_stage(struct kineto_stage *stage, struct error *err)
{
    return error_set(err,
                     "can't keep events in a temporary file: %s; is there room in SQLITE_TMPDIR, "
                     "TMPDIR or /var/tmp?",
                     sqlite3_errmsg(stage->db));
}

int kineto_stage_new(struct kineto_stage **stage, struct error *err)
{
    struct kineto_stage *new = *stage = calloc(1, sizeof *new);
    if (!new)
        return error_set(err, OUT_OF_MEMORY);
    if (sqlite3_open_v2("", &new->db, STORE_FLAGS, NULL) == SQLITE_OK &&
        sqlite3_exec(new->db, schema, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(new->db, "INSERT INTO call VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)", -1,
                           &new->call, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(new->db, "INSERT INTO mark VALUES(?,?,?)", -1, &new->mark, NULL) ==
            SQLITE_OK &&
        sqlite3_prepare_v2(new->db, "INSERT INTO found VALUES(?,?,?,?,?)", -1, &new->kernel,
                           NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(new->db, "INSERT OR IGNORE INTO launch VALUES(?,?,?)", -1, &new->launch,
                           NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(new->db, "INSERT OR IGNORE INTO name(text) VALUES(?)", -1, &new->name,
                           NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(new->db, "INSERT INTO work SELECT ?2, ?3, id FROM name WHERE text = ?1",
                           -1, &new->work, NULL) == SQLITE_OK)
        return 0;
    fail_stage(new, err);
    kineto_stage_free(new);
    *stage = NULL;
    return -1;
}

void kineto_stage_free(struct kineto_stage *stage)
{
    if (!stage)
        return;
    sqlite3_finalize(stage->call);
    sqlite3_finalize(stage->mark);
    sqlite3_finalize(stage->kernel);
    sqlite3_finalize(stage->launch);
    sqlite3_finalize(stage->name);
    sqlite3_finalize(stage->work);
    sqlite3_close(stage->db);
    free(stage);
}

static int insert_row(struct kineto_stage *stage, sqlite3_stmt *statement, const int64_t *value,
                      int values, struct error *err)
{
    for (int i = 0; i < values; i++)
        sqlite3_bind_int64(statement, i + 1, value[i]);
    return sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK
               ? 0
               : fail_stage(stage, err);
}

static int64_t duration(const struct kineto_event *event)
{
    return event->dur_ns > 0 ? event->dur_ns : 0;
}

int kineto_stage_call(struct kineto_stage *stage, const struct kineto_event *event, int group,
                      struct error *err)
{
    const int64_t *number = event->number;
    int64_t external = number[KINETO_EXTERNAL] != KINETO_UNKNOWN ? number[KINETO_EXTERNAL]
                                                                 : --stage->unnamed;
    const int64_t value[] = {event->ts_ns,
                             duration(event),
                             event->tid,
                             external,
                             kind_name_place(event->collective),
                             group,
                             number[KINETO_IN],
                             number[KINETO_OUT],
                             number[KINETO_RANK],
                             number[KINETO_SEQ],
                             number[KINETO_SEND],
                             number[KINETO_RECV],
                             event->datatype,
                             event->split};
    return insert_row(stage, stage->call, value, sizeof value / sizeof *value, err);
}

int kineto_stage_mark(struct kineto_stage *stage, const struct kineto_event *event,
                      struct error *err)
{
    int64_t mark = MARK_UNEVEN;
    if (event->kind == KINETO_ALONE)
        mark = ROW_ALONE;
    else if (event->kind == KINETO_COALESCED)
        mark = ROW_COALESCED;
    const int64_t value[] = {event->ts_ns, event->tid, mark};
    return insert_row(stage, stage->mark, value, sizeof value / sizeof *value, err);
}

int kineto_stage_kernel(struct kineto_stage *stage, const struct kineto_event *event,
                        struct error *err)
{
    const int64_t *number = event->number;
    const int64_t value[] = {number[KINETO_EXTERNAL], number[KINETO_CORRELATION], event->ts_ns,
                             event->ts_ns + duration(event), number[KINETO_DEVICE]};
    return insert_row(stage, stage->kernel, value, sizeof value / sizeof *value, err);
}

int kineto_stage_work(struct kineto_stage *stage, const struct kineto_event *event,
                      struct error *err)
{
    sqlite3_bind_text(stage->name, 1, event->name, -1, SQLITE_STATIC);
    sqlite3_bind_text(stage->work, 1, event->name, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stage->work, 2, event->ts_ns);
    sqlite3_bind_int64(stage->work, 3, event->ts_ns + duration(event));
    return insert_row(stage, stage->name, NULL, 0, err) ||
                   insert_row(stage, stage->work, NULL, 0, err)
               ? -1
               : 0;
}

int kineto_stage_launch(struct kineto_stage *stage, const struct kineto_event *event,
                        struct error *err)
{
    const int64_t value[] = {event->number[KINETO_CORRELATION], event->tid, event->ts_ns};
    return insert_row(stage, stage->launch, value, sizeof value / sizeof *value, err);
}

static uint64_t count_rows(struct kineto_stage *stage, const char *sql)
{
    sqlite3_stmt *statement;
    uint64_t rows = 0;
    if (sqlite3_prepare_v2(stage->db, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        rows = (uint64_t)sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rows;
}

int kineto_stage_join(struct kineto_stage *stage, uint64_t *joined, uint64_t *lonely,
                      struct error *err)
{
    if (sqlite3_exec(stage->db, joins, NULL, NULL, NULL) != SQLITE_OK)
        return fail_stage(stage, err);
    *joined = count_rows(
        stage, "SELECT count(*) FROM found WHERE external IN (SELECT external FROM call)");
    *lonely = count_rows(stage, "SELECT count(*) FROM found") - *joined;
    return 0;
}

static void read_row(sqlite3_stmt *rows, struct kineto_row *row)
{
    int at = 0;
    *row = (struct kineto_row){0};
    row->kind = sqlite3_column_int(rows, at++);
    row->ts_ns = sqlite3_column_int64(rows, at++);
    row->tid = sqlite3_column_int64(rows, at++);
    row->external = sqlite3_column_int64(rows, at++);
    row->collective = kind_name_at(sqlite3_column_int64(rows, at++));
    row->group = sqlite3_column_int(rows, at++);
    int64_t *const field[] = {&row->in, &row->out, &row->rank, &row->seq, &row->send, &row->recv};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        *field[i] = sqlite3_column_int64(rows, at++);
    row->datatype = (enum datatype)sqlite3_column_int(rows, at++);
    row->split = sqlite3_column_int(rows, at++);
    row->wraps = sqlite3_column_int(rows, at++);
    row->has_kernel = sqlite3_column_int(rows, at++);
    row->device = sqlite3_column_int64(rows, at++);
    row->begin_ns = sqlite3_column_int64(rows, at++);
    row->name = (const char *)sqlite3_column_text(rows, at);
}

int kineto_stage_visit(struct kineto_stage *stage,
                       int (*visit)(void *context, const struct kineto_row *row), void *context,
                       struct error *err)
{
    sqlite3_stmt *rows;
    int got = SQLITE_DONE, result = 0;
    if (sqlite3_prepare_v2(stage->db, in_order, -1, &rows, NULL) != SQLITE_OK)
        return fail_stage(stage, err);
    while (!result && (got = sqlite3_step(rows)) == SQLITE_ROW) {
        struct kineto_row row;
        read_row(rows, &row);
        result = visit(context, &row);
    }
    if (!result && got != SQLITE_DONE)
        result = fail_stage(stage, err);
    sqlite3_finalize(rows);
    return result;
}
