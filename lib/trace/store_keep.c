/* store_keep.c: drops old records, piece by piece, and notes in the table `dropped` what is gone.
 */
#include "lib/trace/store_internal.h"

/* A row of `event` takes about 85 bytes. The rows that the newest half of the limit holds are not
 * touched. */
enum { PIECE_ROWS = 16384, ROW_BYTES = 128 };

/* One integer of a statement that gives one row. Returns 0, or -1 with err. */
static int read_number(struct store *store, enum store_statement which, sqlite3_int64 *value,
                       struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, which, err);
    if (!statement)
        return -1;
    int code = sqlite3_step(statement);
    *value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    int result = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_failed(store, err);
    sqlite3_reset(statement);
    return result;
}

int store_size(struct store *store, uint64_t *bytes, struct error *err)
{
    sqlite3_int64 pages, unused, page_bytes;
    if (read_number(store, STORE_PAGES, &pages, err) < 0 ||
        read_number(store, STORE_UNUSED_PAGES, &unused, err) < 0 ||
        read_number(store, STORE_PAGE_BYTES, &page_bytes, err) < 0)
        return -1;
    *bytes = (uint64_t)(pages - unused) * (uint64_t)page_bytes;
    return 0;
}

static int run_piece(struct store *store, enum store_statement which,
                     const struct keep_piece *piece, struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, which, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, piece->after);
    sqlite3_bind_int64(statement, 2, piece->last);
    sqlite3_bind_int64(statement, 3, piece->before_ns);
    return store_run(store, statement, err);
}

static int drop_cuda(struct store *store, const struct keep_piece *piece, struct error *err)
{
    return run_piece(store, STORE_DROP_NOTE, piece, err) < 0
               ? -1
               : run_piece(store, STORE_DROP, piece, err);
}

/* What is deleted, in this order: a stage begins when the previous has nothing left to delete. */
static const struct keep_stage {
    enum store_statement begins; /* behind which row it goes on */
    int (*drop)(struct store *store, const struct keep_piece *piece, struct error *err);
} stages[KEEP_STAGES] = {
    {STORE_DROPPED_CUDA, drop_cuda},
    {STORE_DROPPED_CALLS, store_drop_calls},
};

static int drop_piece(struct store *store, const struct keep_stage *stage,
                      const struct keep_piece *piece, struct error *err)
{
    if (store_begin(store, err) < 0)
        return -1;
    if (stage->drop(store, piece, err) == 0 && store_commit(store, err) == 0)
        return 0;
    store_rollback(store);
    return -1;
}

/* When row `seq`, or the next one that is there, was recorded; INT64_MAX if there is none. Returns
 * 0, or -1 with err. */
static int time_of_row(struct store *store, sqlite3_int64 seq, sqlite3_int64 *time_ns,
                       struct error *err)
{
    sqlite3_stmt *statement = store_prepare(store, STORE_TIME_OF_ROW, err);
    if (!statement)
        return -1;
    sqlite3_bind_int64(statement, 1, seq);
    int code = sqlite3_step(statement);
    *time_ns = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : INT64_MAX;
    int result = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_failed(store, err);
    sqlite3_reset(statement);
    return result;
}

/* The next piece behind row `after`, and which of it may go. Returns 1, 0 if all is within the
 * limits, or -1 with err. */
static int next_piece(struct store *store, const struct keep_limits *limits, uint64_t now_ns,
                      sqlite3_int64 after, struct keep_piece *piece, struct error *err)
{
    uint64_t bytes;
    sqlite3_int64 newest, time_ns;
    if (store_size(store, &bytes, err) < 0 || read_number(store, STORE_LAST_ROW, &newest, err) < 0)
        return -1;
    sqlite3_int64 kept = (sqlite3_int64)(limits->bytes / 2 / ROW_BYTES);
    sqlite3_int64 rows = limits->bytes && kept < PIECE_ROWS ? kept : PIECE_ROWS;
    *piece = (struct keep_piece){after, after + rows, INT64_MAX};
    /* Whole pieces only: else what comes in would keep the first stage busy, and the next waits. */
    if (limits->bytes && bytes > limits->bytes)
        return piece->last <= newest - kept;
    if (!limits->age_ns || now_ns <= limits->age_ns || piece->last >= newest)
        return 0;
    piece->before_ns = (sqlite3_int64)(now_ns - limits->age_ns);
    if (time_of_row(store, piece->last, &time_ns, err) < 0)
        return -1;
    return time_ns < piece->before_ns;
}

static int read_dropped_to(struct store *store, struct error *err)
{
    for (int i = 0; !store->knows_dropped && i < KEEP_STAGES; i++)
        if (read_number(store, stages[i].begins, &store->dropped_to[i], err) < 0)
            return -1;
    store->knows_dropped = true;
    return 0;
}

int store_keep(struct store *store, const struct keep_limits *limits, uint64_t now_ns,
               struct error *err)
{
    struct keep_piece piece;
    int wanted = 0, stage = 0;
    if (read_dropped_to(store, err) < 0)
        return -1;
    while (stage < KEEP_STAGES &&
           (wanted = next_piece(store, limits, now_ns, store->dropped_to[stage], &piece, err)) == 0)
        stage++;
    if (wanted <= 0)
        return wanted;
    if (drop_piece(store, &stages[stage], &piece, err) < 0)
        return -1;
    store->dropped_to[stage] = piece.last;
    return 1;
}

int store_findings_stay(struct store *store, struct error *err)
{
    sqlite3_int64 last;
    if (read_number(store, STORE_LAST_FINDING, &last, err) < 0)
        return -1;
    store->finding_base = (uint32_t)last;
    return 0;
}

int store_visit_old_findings(struct store *store,
                             void (*visit)(void *context, const struct store_old_finding *finding),
                             void *context, struct error *err)
{
    sqlite3_stmt *row = store_prepare(store, STORE_OLD_FINDINGS, err);
    if (!row)
        return -1;
    sqlite3_bind_int64(row, 1, store->finding_base);
    int code;
    while ((code = sqlite3_step(row)) == SQLITE_ROW) {
        const struct store_old_finding finding = {
            .code = (const char *)sqlite3_column_text(row, 0),
            .severity = (const char *)sqlite3_column_text(row, 1),
            .certainty = (const char *)sqlite3_column_text(row, 2),
            .comm = (uint64_t)sqlite3_column_int64(row, 3),
            .fingerprint = (uint64_t)sqlite3_column_int64(row, 4),
        };
        if (finding.code && finding.severity && finding.certainty)
            visit(context, &finding);
    }
    int result = code == SQLITE_DONE ? 0 : store_failed(store, err);
    sqlite3_reset(row);
    return result;
}
