/* diff_ops.c: the operations that diff_side.c stored: read in order, removed, as one word. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/diff/diff_side.h"
#include "lib/base/hash.h"
#include "lib/trace/names.h"

static const char columns[] =
    "SELECT number, api, flags, count, kind, scalar, stack, time, rank, idx, member FROM op ";

static sqlite3_stmt *select_ops(struct diff_side *side, const char *which, struct error *err)
{
    char sql[256];
    sqlite3_stmt *ops;
    snprintf(sql, sizeof sql, "%s%s", columns, which);
    if (sqlite3_prepare_v2(side->store, sql, -1, &ops, NULL) == SQLITE_OK)
        return ops;
    diff_store_failed(side, err);
    return NULL;
}

sqlite3_stmt *diff_ops(struct diff_side *side, int member, uint64_t index, struct error *err)
{
    sqlite3_stmt *ops = select_ops(side, "WHERE member = ? AND idx >= ? ORDER BY idx", err);
    if (ops) {
        sqlite3_bind_int(ops, 1, member);
        sqlite3_bind_int64(ops, 2, (int64_t)index);
    }
    return ops;
}

sqlite3_stmt *diff_process_ops(struct diff_side *side, int process, struct error *err)
{
    if (sqlite3_exec(side->store, "CREATE INDEX IF NOT EXISTS op_process ON op(process)", NULL,
                     NULL, NULL) != SQLITE_OK) {
        diff_store_failed(side, err);
        return NULL;
    }
    sqlite3_stmt *ops = select_ops(side, "WHERE process = ? ORDER BY rowid", err);
    if (ops)
        sqlite3_bind_int(ops, 1, process);
    return ops;
}

int diff_side_forget(struct diff_side *side, int member, uint64_t index, struct error *err)
{
    char sql[192];
    snprintf(sql, sizeof sql,
             "DELETE FROM op WHERE member = %d AND idx < %" PRIu64 ";"
             "UPDATE op SET idx = idx - %" PRIu64 " WHERE member = %d",
             member, index, index, member);
    if (sqlite3_exec(side->store, sql, NULL, NULL, NULL) != SQLITE_OK)
        return diff_store_failed(side, err);
    side->member[member].operations -= index;
    return 0;
}

int diff_op_next(sqlite3_stmt *ops, struct diff_op *op)
{
    int got = sqlite3_step(ops);
    if (got != SQLITE_ROW)
        return got == SQLITE_DONE ? 0 : -1;
    uint64_t kind = (uint64_t)sqlite3_column_int64(ops, 4);
    *op = (struct diff_op){.index = (uint64_t)sqlite3_column_int64(ops, 9),
                           .member = sqlite3_column_int(ops, 10),
                           .record = {.phase = RECORD_ENTER,
                                      .api = (uint16_t)sqlite3_column_int(ops, 1),
                                      .flags = (uint8_t)sqlite3_column_int(ops, 2),
                                      .stack = (uint64_t)sqlite3_column_int64(ops, 6),
                                      .time_ns = (uint64_t)sqlite3_column_int64(ops, 7),
                                      .op = {.number = (uint64_t)sqlite3_column_int64(ops, 0),
                                             .count = (uint64_t)sqlite3_column_int64(ops, 3),
                                             .datatype = (uint8_t)kind,
                                             .redop = (uint8_t)(kind >> 8),
                                             .flags = (uint16_t)(kind >> 16),
                                             .root = (int32_t)(uint32_t)(kind >> 32),
                                             .scalar = (uint64_t)sqlite3_column_int64(ops, 5),
                                             .rank = sqlite3_column_int(ops, 8)}}};
    return 1;
}

uint64_t diff_op_word(const struct diff_op *op, unsigned unknown, bool relative, int nranks)
{
    const struct record *record = &op->record;
    uint64_t api = kind_same_as(record->api);
    bool is_p2p = api_class_of(record->api) == CLASS_P2P,
         reduces = kind_has(record->api, KIND_REDUCES);
    bool rooted = is_p2p || kind_has(record->api, KIND_ROOTED);
    int64_t root = record->op.root;
    if (relative && nranks > 0 && is_p2p)
        root = (root - record->op.rank + nranks) % nranks;
    uint64_t word = hash_word(1, api);
    word = hash_word(word, unknown & DIFF_NO_COUNT ? 0 : record->op.count);
    word = hash_word(word, unknown & DIFF_NO_COUNT ? 0 : record->op.flags & RECORD_OP_NO_COUNT);
    word = hash_word(word, unknown & DIFF_NO_TYPE ? 0 : record->op.datatype);
    word = hash_word(word, unknown & DIFF_NO_REDOP || !reduces ? 0 : record->op.redop);
    word = hash_word(word, unknown & DIFF_NO_REDOP || !reduces ? 0 : record->op.scalar);
    return hash_word(word, unknown & DIFF_NO_ROOT || !rooted ? 0 : (uint64_t)root);
}
