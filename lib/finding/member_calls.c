/* member_calls.c: reads the collectives or messages of a member from the databases of a trace. */
#include "lib/finding/member_calls.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/trace/kinds.h"
#include "lib/trace/record.h"
#include "lib/trace/site.h"

enum { BLOCK_CALLS = 1024, KEPT = 256 };

/* The lines of stacks that were read: a program calls from few. */
struct known_lines {
    struct {
        struct made_at at;
        uint64_t lines;
    } kept[KEPT];
};

struct calls_reader {
    struct member_calls *calls;
    struct trace *trace;
    struct calls_wanted wanted;
    struct known_lines known;
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The same in every process, wherever its files and objects lie. A function without lines stands
 * for all calls in it. */
static uint64_t hash_lines(struct trace *trace, int process, const struct made_at *at)
{
    struct frame frame[SITE_FRAMES_MAX];
    int frames = site_frames(trace, process, at->stack, at->is_address, frame);
    uint64_t hash = HASH_START;
    for (int i = 0; i < frames; i++) {
        bool has_line = *frame[i].file && frame[i].line;
        hash = hash_text(hash, file_name(has_line ? frame[i].file : frame[i].module));
        hash = has_line ? hash_bytes(hash, &frame[i].line, sizeof frame[i].line)
                        : hash_text(hash, frame[i].function);
    }
    return frames ? hash : 0;
}

static uint64_t find_lines(struct calls_reader *reader, const struct made_at *at)
{
    size_t slot = at->stack % KEPT;
    struct made_at *kept = &reader->known.kept[slot].at;
    if (kept->stack != at->stack || kept->is_address != at->is_address) {
        *kept = *at;
        reader->known.kept[slot].lines = hash_lines(reader->trace, reader->calls->process, at);
    }
    return reader->known.kept[slot].lines;
}

/* What its peers must see of a call, as NCCL compares it. */
static uint64_t hash_signature(unsigned api, uint64_t count, uint64_t fields)
{
    struct record record = {0};
    record.op.count = count;
    memcpy(&record.word[5], &fields, sizeof fields);
    const struct kind *kind = kind_find(api);
    /* A send and its receive are alike. */
    uint64_t name = api == API_ncclRecv ? API_ncclSend : kind_same_as(api);
    uint64_t words[] = {name, record.op.count, record.op.datatype};
    uint64_t hash = hash_bytes(HASH_START, words, sizeof words);
    if (kind && kind->flags & KIND_REDUCES && record.op.redop != REDOP_UNKNOWN)
        hash = hash_bytes(hash, &record.op.redop, sizeof record.op.redop);
    if (kind && kind->flags & KIND_ROOTED)
        hash = hash_bytes(hash, &record.op.root, sizeof record.op.root);
    return hash;
}

enum { RANK_UNKNOWN = -1, RANK_UNCLEAR = -2 };

/* Its member of the communicator: the only one, or that which people call so. Where a trace begins
 * within a block, its calls show it. */
static int find_member_rank(sqlite3 *database, uint64_t comm, int process, int shown_rank)
{
    static const char sql[] = "SELECT DISTINCT rank FROM operation_block "
                              "WHERE comm = ?1 AND process = ?2 ORDER BY rank = ?3 DESC LIMIT 2";
    sqlite3_stmt *row = NULL;
    int rank = RANK_UNKNOWN;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
        return rank;
    sqlite3_bind_int64(row, 1, (int64_t)comm);
    sqlite3_bind_int(row, 2, process);
    sqlite3_bind_int(row, 3, shown_rank);
    if (sqlite3_step(row) == SQLITE_ROW)
        rank = sqlite3_column_int(row, 0);
    if (rank != RANK_UNKNOWN && rank != shown_rank && sqlite3_step(row) == SQLITE_ROW)
        rank = RANK_UNCLEAR;
    sqlite3_finalize(row);
    return rank;
}

/* One of no elements, which NCCL drops, has the number of the next: the last one counts. */
static void keep_member_call(struct calls_reader *reader, sqlite3_stmt *row)
{
    struct member_calls *calls = reader->calls;
    uint64_t number = (uint64_t)sqlite3_column_int64(row, 0);
    struct made_at at = {
        .stack = (uint64_t)sqlite3_column_int64(row, 1),
        .serial = (uint64_t)sqlite3_column_int64(row, 3),
        .row = sqlite3_column_int64(row, 8),
        .group = (uint64_t)sqlite3_column_int64(row, 9),
        .is_address = sqlite3_column_int64(row, 2) & RECORD_FLAG_ADDRESS,
    };
    int rank = sqlite3_column_int(row, 7);
    if (calls->rank == RANK_UNKNOWN)
        calls->rank = rank;
    if (calls->rank != rank)
        calls->rank = RANK_UNCLEAR;
    size_t index = (size_t)(number - calls->first);
    struct call_symbol *symbol = &calls->symbol[index];
    symbol->lines = at.stack ? find_lines(reader, &at) : 0;
    symbol->signature = hash_signature((unsigned)sqlite3_column_int(row, 4),
                                       (uint64_t)sqlite3_column_int64(row, 5),
                                       (uint64_t)sqlite3_column_int64(row, 6));
    if (!symbol->lines)
        at.stack = 0;
    calls->at[index] = at;
    if (index >= calls->count)
        calls->count = index + 1;
}

static int read_database(struct calls_reader *reader, int database, int process)
{
    static const char sql[] =
        "SELECT w1, stack, flags, serial, api, w4, w5, w8 >> 32, seq, w7 FROM event "
        "WHERE process = ?1 AND phase = 1 AND w0 = ?2 AND (?3 < 0 OR w8 >> 32 = ?3) AND w1 >= ?4 "
        "AND flags & ?5 = 0 AND (?7 AND api = ?7 AND w5 >> 32 = ?8 OR NOT ?7 AND "
        "                        api IN (SELECT number FROM api WHERE class = 'collective')) "
        "AND seq >= (SELECT coalesce(max(seq), 0) FROM operation_block WHERE NOT ?7 "
        "            AND comm = ?2 AND rank = ?3 AND process = ?1 AND block <= ?6)";
    const struct member_calls *calls = reader->calls;
    const int64_t value[] = {
        process,
        (int64_t)reader->wanted.comm,
        calls->rank,
        (int64_t)calls->first,
        RECORD_FLAG_CAPTURE | RECORD_FLAG_GONE,
        (int64_t)(calls->first / BLOCK_CALLS),
        reader->wanted.api,
        reader->wanted.peer,
    };
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(trace_database(reader->trace, database), sql, -1, &row, NULL) !=
        SQLITE_OK)
        return -1;
    for (int i = 0; i < (int)(sizeof value / sizeof *value); i++)
        sqlite3_bind_int64(row, i + 1, value[i]);
    while (sqlite3_step(row) == SQLITE_ROW &&
           (uint64_t)sqlite3_column_int64(row, 0) < reader->wanted.end)
        keep_member_call(reader, row);
    sqlite3_finalize(row);
    return calls->count && calls->rank >= 0 ? 0 : -1;
}

static int find_and_read(struct calls_reader *reader)
{
    struct trace *trace = reader->trace;
    struct member_calls *calls = reader->calls;
    for (int database = 0; database < trace_database_count(trace); database++)
        for (int process = 0; process < trace_database_processes(trace, database); process++) {
            if (trace_process_of(trace, database, process) != calls->process)
                continue;
            calls->rank = find_member_rank(trace_database(trace, database), reader->wanted.comm,
                                           process, reader->wanted.shown_rank);
            return calls->rank == RANK_UNCLEAR ? -1 : read_database(reader, database, process);
        }
    return -1;
}

int member_calls_read(struct member_calls *calls, struct trace *trace, int process,
                      const struct calls_wanted *wanted)
{
    size_t room = wanted->end - wanted->first;
    struct calls_reader *reader = calloc(1, sizeof *reader);
    *calls = (struct member_calls){
        .process = process,
        .first = wanted->first,
        .symbol = calloc(room, sizeof *calls->symbol),
        .at = calloc(room, sizeof *calls->at),
    };
    int result = -1;
    if (reader && calls->symbol && calls->at) {
        reader->calls = calls;
        reader->trace = trace;
        reader->wanted = *wanted;
        result = find_and_read(reader);
    }
    free(reader);
    if (result)
        member_calls_free(calls);
    return result;
}

void member_calls_free(struct member_calls *calls)
{
    free(calls->symbol);
    free(calls->at);
    *calls = (struct member_calls){0};
}

void member_calls_drop(struct member_calls *calls, uint64_t first)
{
    size_t dropped = first > calls->first ? (size_t)(first - calls->first) : 0;
    dropped = dropped < calls->count ? dropped : calls->count;
    calls->count -= dropped;
    calls->first += dropped;
    memmove(calls->symbol, calls->symbol + dropped, calls->count * sizeof *calls->symbol);
    memmove(calls->at, calls->at + dropped, calls->count * sizeof *calls->at);
}

enum { CUDA_OUT_OF_MEMORY = 2 }; /* cudaErrorMemoryAllocation */

/* A failure whose size no later allocation has before the next collective. */
static const char failure_sql[] =
    "WITH kept AS (SELECT api, serial, result, stack, flags, w1, "
    "                     api IN (SELECT number FROM api WHERE class = 'memory') AS is_memory "
    "              FROM event WHERE process = ?1 AND seq > ?4 AND serial > ?2 AND serial < ?3 "
    "              AND phase <> 2 "
    "              AND api IN (SELECT number FROM api WHERE class IN ('memory', 'collective'))) "
    "SELECT api, serial, stack, flags, 0 FROM kept f WHERE is_memory AND result = ?5 "
    "AND NOT EXISTS "
    "  (SELECT 1 FROM kept a WHERE a.is_memory AND a.result = 0 AND a.w1 = f.w1 "
    "   AND a.serial > f.serial AND a.serial < coalesce("
    "     (SELECT min(c.serial) FROM kept c WHERE NOT c.is_memory AND c.serial > f.serial), ?3)) "
    "ORDER BY serial LIMIT 1";

static const char caught_sql[] =
    "SELECT api, serial, stack, flags, w0 FROM event WHERE process = ?1 AND seq > ?4 "
    "AND serial > ?2 AND serial < ?3 AND api = (SELECT number FROM api "
    "WHERE name = 'notice_exception') AND w2 = ?5 ORDER BY serial LIMIT 1";

static struct failed_allocation read_first_failure(sqlite3 *database, const char *sql, int reason,
                                                   int process, const struct made_at *after,
                                                   uint64_t before)
{
    struct failed_allocation found = {0};
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK)
        return found;
    sqlite3_bind_int(row, 1, process);
    sqlite3_bind_int64(row, 2, (int64_t)after->serial);
    sqlite3_bind_int64(row, 3, (int64_t)before);
    sqlite3_bind_int64(row, 4, after->row);
    sqlite3_bind_int(row, 5, reason);
    if (sqlite3_step(row) == SQLITE_ROW)
        found = (struct failed_allocation){
            .api = (unsigned)sqlite3_column_int(row, 0),
            .text = (uint64_t)sqlite3_column_int64(row, 4),
            .at = {.serial = (uint64_t)sqlite3_column_int64(row, 1),
                   .stack = (uint64_t)sqlite3_column_int64(row, 2),
                   .is_address = sqlite3_column_int64(row, 3) & RECORD_FLAG_ADDRESS},
        };
    sqlite3_finalize(row);
    return found;
}

static struct failed_allocation find_first(struct trace *trace, const char *sql, int reason,
                                           int process, const struct made_at *after,
                                           uint64_t before)
{
    struct failed_allocation found = {0};
    for (int database = 0; database < trace_database_count(trace); database++)
        for (int local = 0; local < trace_database_processes(trace, database); local++)
            if (trace_process_of(trace, database, local) == process)
                found = read_first_failure(trace_database(trace, database), sql, reason, local,
                                           after, before);
    return found;
}

struct failed_allocation failed_allocation_find(struct trace *trace, int process,
                                                const struct made_at *after, uint64_t before)
{
    return find_first(trace, failure_sql, CUDA_OUT_OF_MEMORY, process, after, before);
}

struct failed_allocation caught_exception_find(struct trace *trace, int process,
                                               const struct made_at *after, uint64_t before)
{
    return find_first(trace, caught_sql, EXCEPTION_CAUGHT, process, after, before);
}
