/* store_keep_calls.c: drops finished calls of a piece of a trace; a digest takes their place. */
#include "lib/trace/store_internal.h"

/* Parameters 1 and 2: the piece is behind the first row, up to the second; 3: only what is older.
 */
#define IN_PIECE(row)          row ".seq > ?1 AND " row ".seq <= ?2 AND " row ".time_ns < ?3 "
#define OF_CLASS(row, classes) row ".api IN (SELECT number FROM api WHERE class IN (" classes ")) "
/* Success, and what only says that something goes on: ncclInProgress, cudaErrorNotReady. */
#define USUAL_RESULT(row) row ".result IN (0, 7, 600) "
/* RECORD_FLAG_CAPTURE and RECORD_FLAG_GONE: needed by a graph's launches, and wrong. */
#define IS_USUAL_CALL                                                                       \
    "e.flags & 12 = 0 AND EXISTS (SELECT 1 FROM event l WHERE l.phase = 2 AND l.process = " \
    "e.process AND l.w0 = e.serial AND " USUAL_RESULT("l") ") "
#define RECORD_OF(row) "SELECT " row ".seq FROM event " row " WHERE " IN_PIECE(row)

/* Where the GPU does not report how far it is, as many of a member may be under way. */
#define UNDER_WAY "1024"

/* CROSS JOIN makes SQLite read the table on its left first. Otherwise it reads the whole trace for
 * each piece, because it does not know that the temporary tables are small.
 *
 * temp.finished: up to where all members of a communicator have done its collectives.
 * temp.going: the rows that go. temp.staying: of each member the first collective that stays since
 * the last that went, in this piece or one before (of an earlier collector, too); messages behind
 * it stay, so that from there on nothing is missing. temp.reached: of each member the last
 * collective among those that go: its row becomes a notice_reached, from which an analysis can
 * begin. */
static const char *const steps[] = {
    "CREATE TEMP TABLE IF NOT EXISTS finished(comm INTEGER PRIMARY KEY, below INTEGER NOT NULL)",
    "CREATE TEMP TABLE IF NOT EXISTS going(seq INTEGER PRIMARY KEY)",
    "CREATE TEMP TABLE IF NOT EXISTS staying AS SELECT e.w0 AS comm, e.w8 >> 32 AS rank, "
    "min(e.seq) AS seq FROM event e WHERE e.seq <= ?1 AND e.phase = 1 AND " OF_CLASS(
        "e", "'collective'") "AND e.seq > coalesce((SELECT m.seq FROM member_start m "
                             "WHERE m.comm = e.w0 AND m.rank = e.w8 >> 32), 0) GROUP BY 1, 2",
    "CREATE UNIQUE INDEX IF NOT EXISTS temp.staying_member ON staying(comm, rank)",
    "CREATE TEMP TABLE IF NOT EXISTS reached(seq INTEGER PRIMARY KEY, comm INTEGER NOT NULL, "
    "rank INTEGER NOT NULL, issued INTEGER NOT NULL, UNIQUE(comm, rank))",
    "DELETE FROM temp.finished",
    "DELETE FROM temp.going",
    "DELETE FROM temp.reached",

    "INSERT INTO temp.finished SELECT comm, min(CASE WHEN destroyed THEN issued "
    "WHEN done > 0 THEN min(done, issued) ELSE issued - " UNDER_WAY " END) "
    "FROM member_state GROUP BY comm",
    "INSERT INTO temp.going " RECORD_OF("e") "AND e.phase = 1 AND " OF_CLASS(
        "e", "'collective'") "AND e.w1 < (SELECT below FROM temp.finished WHERE comm = e.w0) "
                             "AND " IS_USUAL_CALL,

    "DELETE FROM temp.staying WHERE (comm, rank) IN (SELECT e.w0, e.w8 >> 32 FROM temp.going g "
    "CROSS JOIN event e ON e.seq = g.seq)",
    "INSERT OR IGNORE INTO temp.staying SELECT e.w0, e.w8 >> 32, min(e.seq) FROM event e "
    "WHERE " IN_PIECE("e") "AND e.phase = 1 AND " OF_CLASS(
        "e", "'collective'") "AND e.seq NOT IN (SELECT seq FROM temp.going) GROUP BY 1, 2",

    "INSERT INTO operation_digest SELECT e.w0, e.w8 >> 32, e.w1 / 1024, e.process, count(*), "
    "sum(e.w4), min(e.time_ns), max(e.time_ns), sum(l.time_ns - e.time_ns), "
    "max(l.time_ns - e.time_ns) FROM temp.going g CROSS JOIN event e ON e.seq = g.seq "
    "JOIN event l ON l.phase = 2 AND l.process = e.process AND l.w0 = e.serial GROUP BY 1, 2, 3 "
    "ON CONFLICT(comm, rank, block) DO UPDATE SET calls = calls + excluded.calls, "
    "elements = elements + excluded.elements, first_ns = min(first_ns, excluded.first_ns), "
    "last_ns = max(last_ns, excluded.last_ns), host_ns = host_ns + excluded.host_ns, "
    "longest_ns = max(longest_ns, excluded.longest_ns)",
    "INSERT INTO temp.reached SELECT seq, comm, rank, number + 1 FROM (SELECT e.seq AS seq, "
    "e.w0 AS comm, e.w8 >> 32 AS rank, max(e.w1) AS number FROM temp.going g "
    "CROSS JOIN event e ON e.seq = g.seq GROUP BY 2, 3)",

    "INSERT INTO temp.going " RECORD_OF("e") "AND e.phase = 1 AND " OF_CLASS(
        "e", "'p2p'") "AND e.w0 IN (SELECT comm FROM temp.finished) AND NOT EXISTS (SELECT 1 FROM "
                      "temp.staying s "
                      "WHERE s.comm = e.w0 AND s.rank = e.w8 >> 32 AND s.seq < e.seq) "
                      "AND " IS_USUAL_CALL,
    /* What a wait released is gone by it: cudaFree, cudaFreeHost, cudaDeviceReset stay. */
    "INSERT INTO temp.going " RECORD_OF("e") "AND e.phase = 1 AND " OF_CLASS(
        "e", "'wait', 'group'") "AND e.api NOT IN (SELECT number FROM api WHERE name IN "
                                "('cudaFree', 'cudaFreeHost', "
                                "'cudaDeviceReset')) AND " IS_USUAL_CALL,
    "INSERT INTO temp.going " RECORD_OF("s") "AND s.phase = 0 AND " OF_CLASS(
        "s", "'group'") "AND (s.process, s.w0) IN (SELECT e.process, e.w0 FROM temp.going g "
                        "CROSS JOIN event e ON e.seq = g.seq WHERE " OF_CLASS("e", "'group'") ")",
    "INSERT INTO temp.going SELECT l.seq FROM temp.going g CROSS JOIN event e ON e.seq = g.seq "
    "JOIN event l ON l.phase = 2 AND l.process = e.process AND l.w0 = e.serial "
    "WHERE e.phase = 1",
    "INSERT INTO temp.going " RECORD_OF("e") "AND e.phase = 0 AND " USUAL_RESULT(
        "e") "AND e.flags & 4 = 0 AND e.api IN (SELECT number FROM api WHERE name IN "
             "('cudaEventRecord', "
             "'cudaEventRecordWithFlags', 'cudaStreamWaitEvent', 'cudaEventQuery', "
             "'cudaStreamQuery', "
             "'notice_tick', 'notice_known'))",
    "INSERT INTO temp.going " RECORD_OF(
        "e") "AND e.api = (SELECT number FROM api WHERE "
             "name = 'notice_hash') AND e.w1 < (SELECT below FROM temp.finished WHERE comm = e.w0)",
    /* The last one of each slot says what those before did. */
    "INSERT INTO temp.going SELECT seq FROM (SELECT e.seq AS seq, row_number() OVER (PARTITION BY "
    "e.process, e.w0 ORDER BY e.seq DESC) AS place FROM event e WHERE " IN_PIECE(
        "e") "AND e.api = (SELECT number FROM api WHERE name = 'notice_progress')) WHERE place > 1",

    "DELETE FROM temp.going WHERE seq IN (SELECT seq FROM temp.reached)",
    "INSERT OR IGNORE INTO temp.going SELECT m.seq FROM member_start m JOIN temp.reached r "
    "ON r.comm = m.comm AND r.rank = m.rank",
    "INSERT INTO dropped SELECT e.process, 'calls', count(*), min(e.time_ns), max(e.time_ns), ?2 "
    "FROM temp.going g CROSS JOIN event e ON e.seq = g.seq WHERE true GROUP BY e.process "
    "ON CONFLICT(process, what) DO UPDATE SET records = records + excluded.records, "
    "first_ns = min(first_ns, excluded.first_ns), last_ns = max(last_ns, excluded.last_ns), "
    "seq = excluded.seq",
    "INSERT OR REPLACE INTO member_start SELECT r.comm, r.rank, e.process, r.issued, r.seq, "
    "e.time_ns FROM temp.reached r JOIN event e ON e.seq = r.seq",
    "DELETE FROM event WHERE seq IN (SELECT seq FROM temp.going)",
    /* Payload reached: comm, issued, done, rank. */
    "UPDATE event SET api = (SELECT number FROM api WHERE name = 'notice_reached'), serial = 0, "
    "phase = 0, flags = 0, thread = 0, result = 0, stack = 0, stream = 0, w0 = r.comm, "
    "w1 = r.issued, w2 = r.issued, w3 = r.rank, w4 = 0, w5 = 0, w6 = 0, w7 = 0, w8 = 0, w9 = 0 "
    "FROM temp.reached r WHERE event.seq = r.seq AND event.seq IN (SELECT seq FROM temp.reached)",
};

static int run_step(struct store *store, const char *sql, const struct keep_piece *piece,
                    struct error *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return store_failed(store, err);
    for (int i = 1; i <= sqlite3_bind_parameter_count(statement); i++) {
        const sqlite3_int64 value[] = {piece->after, piece->last, piece->before_ns};
        sqlite3_bind_int64(statement, i, value[i - 1]);
    }
    int result = sqlite3_step(statement) == SQLITE_DONE ? 0 : store_failed(store, err);
    sqlite3_finalize(statement);
    return result;
}

int store_drop_calls(struct store *store, const struct keep_piece *piece, struct error *err)
{
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (run_step(store, steps[i], piece, err) < 0)
            return -1;
    return 0;
}
