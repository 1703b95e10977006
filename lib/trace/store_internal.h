/* store_internal.h: what the files of the store share; nobody else includes it. */
#ifndef DDPCHECK_STORE_INTERNAL_H
#define DDPCHECK_STORE_INTERNAL_H

#include <sqlite3.h>

#include "lib/trace/store.h"

enum { STORE_APPLICATION_ID = 0x44445043 }; /* "DDPC" */

enum store_statement {
    STORE_BEGIN,
    STORE_COMMIT,
    STORE_EVENTS,
    STORE_PROCESS_FIND,
    STORE_PROCESS_ADD,
    STORE_PROCESS_SHIFT,
    STORE_POSITION_SET,
    STORE_POSITION_GET,
    STORE_META_SET,
    STORE_META_REMOVE,
    STORE_META_GET,
    STORE_STRING_START,
    STORE_STRING_APPEND,
    STORE_FRAME,
    STORE_PYTHON,
    STORE_MODULE,
    STORE_LIBRARY,
    STORE_SETTING,
    STORE_SYMBOL,
    STORE_INLINED,
    STORE_FINDING,
    STORE_SIDES_REMOVE,
    STORE_SIDE,
    STORE_ACTS_REMOVE,
    STORE_CALLS_REMOVE,
    STORE_ACT,
    STORE_CALL,
    STORE_TITLE,
    STORE_MEMBER,
    STORE_LABEL,
    STORE_WAITS_REMOVE,
    STORE_WAIT,
    STORE_SPEED_REMOVE,
    STORE_SPEED,
    STORE_LOST,
    STORE_END,
    STORE_BLOCK,
    STORE_BLOCK_HASH,
    STORE_IMPORTED,
    STORE_PAGES,
    STORE_UNUSED_PAGES,
    STORE_PAGE_BYTES,
    STORE_LAST_ROW,
    STORE_TIME_OF_ROW,
    STORE_DROPPED_CUDA,
    STORE_DROPPED_CALLS,
    STORE_LAST_FINDING,
    STORE_OLD_FINDINGS,
    STORE_DROP_NOTE,
    STORE_DROP,
    STORE_STATEMENTS
};

enum { KEEP_STAGES = 2 }; /* store_keep.c: copies, kernels and ranges; finished calls */

/* Rows of `event`; some are deleted. */
struct keep_piece {
    sqlite3_int64 after, last; /* those behind `after`, up to `last` */
    sqlite3_int64 before_ns;   /* only those that are older */
};

/* The records that STORE_EVENTS writes. */
struct store_incoming {
    const int *process;
    const struct record *record;
    int count;
};

struct store {
    sqlite3 *db;
    char *path;
    int failure; /* SQLite's extended code of the last failure */
    sqlite3_stmt *statement[STORE_STATEMENTS];
    struct store_incoming incoming;        /* store_events.c */
    struct store_block *blocks;            /* store_block.c */
    sqlite3_int64 dropped_to[KEEP_STAGES]; /* store_keep.c: up to this row */
    bool knows_dropped;
    uint32_t finding_base; /* findings of before that can't be found again have ids up to this */
};

/* The prepared statement, reset; NULL with err. */
sqlite3_stmt *store_prepare(struct store *store, enum store_statement which, struct error *err);
/* Runs a prepared statement that gives no row. Returns 0, or -1 with err. */
int store_run(struct store *store, sqlite3_stmt *statement, struct error *err);
/* Remembers and describes SQLite's last failure. Returns -1. */
int store_failed(struct store *store, struct error *err);

/* store_events.c: the statement, and what it reads from. 0, or -1 with err. */
extern const char store_insert_events[];
int store_events_begin(struct store *store, struct error *err);

/* store_block.c: a collective was stored as row `seq`: a block of 1,024 may begin or end with it.
 * 0, or -1 with err. */
int store_block_note(struct store *store, int process, const struct record *record,
                     sqlite3_int64 seq, struct error *err);
/* A transaction was undone: the hashes of the blocks at hand are not known any more. */
void store_block_undone(struct store *store);
void store_block_free(struct store *store);

/* store_keep.c: where records were dropped, the findings of before stay beside those that come.
 * 0, or -1 with err. */
int store_findings_stay(struct store *store, struct error *err);

/* store_keep_calls.c: drops what is over of the piece: collectives that all members have done,
 * messages, waits, what orders them. Notes it in `dropped`, and what it was in operation_digest and
 * member_start. Within a transaction. 0, or -1 with err. */
int store_drop_calls(struct store *store, const struct keep_piece *piece, struct error *err);

/* What a notice says goes into its table too. Returns 0, or -1 with err. */
int store_notice(struct store *store, int process, const struct record *record, struct error *err);

#endif
