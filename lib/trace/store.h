/* store.h: the trace database: SQLite, one per host, written by the collector alone.
 *
 * Everything recorded goes into one narrow table, `event`, whose rows are records (record.h) in the
 * order in which the collector took them; the views (v_collective, v_wait, v_finding, ...) show
 * them under readable names. docs/schema.md describes it; schema.sql is the truth. application_id
 * is "DDPC"; user_version is major * 1000 + minor: a reader takes the minors of its major
 * from STORE_SCHEMA_MINOR on. */
#ifndef DDPCHECK_STORE_H
#define DDPCHECK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/trace/call.h"
#include "lib/trace/keep.h"
#include "lib/trace/member_state.h"
#include "lib/trace/record.h"
#include "lib/trace/ring.h"

enum {
    STORE_SCHEMA_MAJOR = 1,
    STORE_SCHEMA_MINOR = 10 /* the oldest that is read: no release wrote a lower one */
};

struct store;

/* What store_open returns of a trace that is damaged. */
enum { STORE_DAMAGED = -2 };

/* Opens the database at `path` for writing; makes it if it is not there. Refuses what is no trace
 * of ours, or of a schema that it does not know. Returns 0, or -1 or STORE_DAMAGED with err. */
int store_open(struct store **store, const char *path, struct error *err);
/* Whether a database of this user_version can be read and written here. Returns 0, or -1 with err,
 * which says what to do. */
int store_check_version(const char *path, int64_t version, struct error *err);
/* Commits and closes. NULL is allowed. Returns 0, or -1 with err (the store is closed all the
 * same). */
int store_close(struct store *store, struct error *err);

/* A transaction holds one batch. Both return 0, or -1 with err. After any failure inside a batch
 * undo it with store_rollback and write it again, or give up. */
int store_begin(struct store *store, struct error *err);
int store_commit(struct store *store, struct error *err);
void store_rollback(struct store *store);
/* True if the last failure may pass (disk full, memory short, someone holds a lock): try again
 * later. */
bool store_may_retry(const struct store *store);
/* True if the last failure shows that the database is damaged. */
bool store_is_damaged(const struct store *store);

/* Makes a process known and returns its index (its row in `process`), the same one if the same
 * (boot id, pid, start ticks, monotonic_ns) was stored before; -1 with err. */
int store_process(struct store *store, const struct process_info *info, struct error *err);
/* The clock of its host is off: adds shift_ns to the realtime of a process. Returns 0, or -1 with
 * err. */
int store_shift_process(struct store *store, int process, int64_t shift_ns, struct error *err);
/* The index of a process that was stored before: -1 without err if it was not, -2 with err. */
int store_process_find(struct store *store, const struct process_info *info, struct error *err);

/* Where an imported process came from (lib/import) and what that can't say. Returns 0, or -1 with
 * err. */
struct store_import {
    const char *format, *title, *file;
    uint32_t lacks; /* LACKS_* */
};
int store_imported(struct store *store, int process, const struct store_import *imported,
                   struct error *err);
/* Nobody reads it before it is whole, and it is made again if it breaks: no journal, no waiting for
 * the disk. 0, or -1 with err. */
int store_is_new(struct store *store, struct error *err);

/* Appends `count` events, `process` and `record` of each. Returns 0, or -1 with err. */
int store_events(struct store *store, const int *process, const struct record *record, int count,
                 struct error *err);
/* The same with one. */
int store_event(struct store *store, int process, const struct record *record, struct error *err);

/* How many bytes of the database are in use: pages that were freed and not used again don't count.
 * Returns 0, or -1 with err. */
int store_size(struct store *store, uint64_t *bytes, struct error *err);
/* Drops one piece of the oldest copies, kernels and ranges, in a transaction of its own, if the
 * database is larger than limits->bytes or they are older than limits->age_ns at now_ns
 * (CLOCK_MONOTONIC); where these are gone, one of calls that are over (store_keep_calls.c), of
 * which a digest stays. What the newest half of the limit holds is not dropped for its size. What
 * is gone is noted in the table `dropped`, whose readers then know that it is missing. Returns 1 if
 * there may be more to drop, 0 if not, or -1 with err. */
int store_keep(struct store *store, const struct keep_limits *limits, uint64_t now_ns,
               struct error *err);

/* Visits the findings of before that may not be found again, because records were dropped: all
 * that are open, as far as a column says it. Returns 0, or -1 with err. */
struct store_old_finding {
    const char *code, *severity, *certainty;
    uint64_t comm, fingerprint;
};
int store_visit_old_findings(struct store *store,
                             void (*visit)(void *context, const struct store_old_finding *finding),
                             void *context, struct error *err);

/* How far ring `ring` (segment * RING_KINDS + kind) of a process was read; kept in the same
 * transaction as the events read. get gives 0 if nothing was kept. */
int store_position_set(struct store *store, int process, unsigned ring, uint64_t position,
                       struct error *err);
int store_position_get(struct store *store, int process, unsigned ring, uint64_t *position,
                       struct error *err);

/* A finding, or its new state (same id); sides are replaced. Defined over plain values, since lib/
 * knows nothing of the analyzer. */
struct store_call { /* a row of finding_call */
    const char *role, *kind;
    uint64_t comm, number;
    const char *title; /* of comm: a row of finding_comm; NULL or "": none */
    struct called called;
};
enum { STORE_ACT_CALLS = 3 };
struct store_act {   /* a row of finding_act */
    const char *did; /* NULL: not known */
    int32_t value, rank;
    uint64_t number;
    const char *name, *phase;
    struct store_call call[STORE_ACT_CALLS];
    int calls;
};
struct store_side {
    const char *ranks, *call, *phase, *where; /* call and where: the acts in words */
    struct store_act act, now;
    int process;
    uint64_t stack, where_stack, since_ns;
    bool stack_is_address, where_stack_is_address;
};
struct store_finding {
    uint32_t id;
    const char *code, *severity, *certainty, *state, *what, *todo;
    uint64_t comm, number, first_ns, last_ns, times, fingerprint;
    bool has_number;
    const struct store_side *side;
    int sides;
};
int store_finding(struct store *store, const struct store_finding *finding, struct error *err);

/* A member of a communicator as it is at updated_ns; replaces what was stored of it. Its place,
 * since_ns and the stack are those of its process. */
int store_member(struct store *store, const struct member_state *member, uint64_t updated_ns,
                 struct error *err);

/* A line of the tree of waits; `id` is its place in it. The first line (id 0) takes the place of
 * the whole tree before; NULL leaves an empty one. */
struct store_wait {
    int id, depth, process, shown_rank;
    const char *text;
    bool in_cycle, stuck, again;
    uint64_t since_ns, stack;
    bool stack_is_address;
};
int store_wait(struct store *store, const struct store_wait *wait, struct error *err);

/* How a rank stands beside its peers (table speed_state). The first row (id 0) takes the place of
 * all rows before. Times are those of an iteration, on average. */
struct store_speed {
    int id, shown_rank, process;
    uint64_t comm;
    const char *kind, *code; /* "slow host", "DC601"; "" it is not named */
    int64_t lag_ns, wait_ns, length_ns;
    uint64_t since, period, first, last; /* iterations */
    bool coarse;                         /* times are known to a millisecond */
    const char *trend; /* "0,0,31,40": own time beyond the peers', percent of an iteration */
};
int store_speed(struct store *store, const struct store_speed *speed, struct error *err);

/* A symbolised address of a process (symbols.h): function, file and line; file NULL and line 0 if
 * not known. */
int store_symbol(struct store *store, int process, uint64_t address, const char *module,
                 const char *function, const char *file, int line, struct error *err);
/* The function at `depth` (1, 2, ...) of those that the function of store_symbol was inlined into.
 */
int store_inlined(struct store *store, int process, uint64_t address, int depth,
                  const char *function, const char *file, int line, struct error *err);

/* One key of `meta`. value NULL removes it. */
int store_meta(struct store *store, const char *key, const char *value, struct error *err);
/* The value of a key of `meta`, cut to `bytes`; "" if there is none. Returns 0, or -1 with err. */
int store_meta_get(struct store *store, const char *key, char *value, size_t bytes,
                   struct error *err);
/* Moves all that the write-ahead log holds into the database file. Returns 0, or -1 with err. */
int store_checkpoint(struct store *store, struct error *err);

#endif
