/* diff_side.h: one of the two traces that `ddpcheck diff` compares: its communicators, and what
 * each member of them called.
 *
 * The operations lie in a temporary database of SQLite's (memory first, then a file that has no
 * name), so that memory does not grow with the trace. */
#ifndef DDPCHECK_DIFF_SIDE_H
#define DDPCHECK_DIFF_SIDE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "cmd/diff/diff_pace.h"
#include "lib/base/error.h"
#include "lib/trace/trace.h"

struct diff_member {
    int comm, rank; /* index in comm[], rank in it */
    int process;    /* the trace's */
    int shown_rank; /* that people know */
    uint64_t operations;
    bool differs; /* diff_compare found something */
};

struct diff_process { /* by the trace's number */
    uint32_t thread;  /* that makes its calls, 0 none does */
    bool several_threads;
    bool left_out; /* not all of its calls are compared */
};

struct diff_comm { /* in the order in which they came to exist */
    uint64_t id;
    int nranks;  /* 0: not known */
    int *member; /* by rank: index in member[], -1: that rank has no trace */
    int ranks;   /* entries of it */
};

/* Fields of operations that the source of a trace never knows (lib/trace/lacks.def): they are
 * compared nowhere. */
enum diff_unknown { DIFF_NO_TYPE = 1, DIFF_NO_REDOP = 2, DIFF_NO_COUNT = 4, DIFF_NO_ROOT = 8 };

struct diff_side {
    const char *path;
    struct trace *trace;
    struct diff_comm *comm;
    int comms;
    struct diff_member *member;
    int members;
    struct diff_process *process;
    int processes;
    struct diff_table *table; /* members by communicator and rank */
    uint64_t operations;
    uint64_t begin_ns, end_ns; /* of the trace, realtime; 0: it is empty */
    struct diff_pace pace;     /* how fast it was */
    unsigned unknown;          /* enum diff_unknown, of any of its processes */
    sqlite3 *store;
    sqlite3_stmt *insert;
    struct error damage; /* the trace is cut: what comes before is compared; empty if not */
};

/* What one operation is. */
struct diff_op {
    struct record record; /* an ENTER with api, flags, stack and payload op */
    uint64_t index;       /* in the member's sequence, sends and receives included, from 0 */
    int member;
};

/* Reads a trace (a directory or a database). `progress`: say on stderr how far it is. Returns 0, or
 * -1 with err. */
int diff_side_load(struct diff_side *side, const char *path, bool progress, struct error *err);
void diff_side_free(struct diff_side *side);

/* The operations of a member from `index` on, for diff_op_next; sqlite3_finalize it. NULL with err.
 */
sqlite3_stmt *diff_ops(struct diff_side *side, int member, uint64_t index, struct error *err);
/* All operations of a process in the order of its calls, for diff_op_next. NULL with err. */
sqlite3_stmt *diff_process_ops(struct diff_side *side, int process, struct error *err);
/* 1, 0 at the end, -1 on failure (sqlite3_errmsg of side->store). */
int diff_op_next(sqlite3_stmt *ops, struct diff_op *op);

/* Removes the operations of a member before `index`: what follows is numbered from 0. Returns 0, or
 * -1 with err. */
int diff_side_forget(struct diff_side *side, int member, uint64_t index, struct error *err);

/* What the operation asks of the other ranks, as one word: equal words are equal operations. Peers
 * count by their distance from `rank`, of `nranks`, if `relative`. */
uint64_t diff_op_word(const struct diff_op *op, unsigned unknown, bool relative, int nranks);

/* Says that the temporary database failed. Returns -1. */
int diff_store_failed(struct diff_side *side, struct error *err);
/* Says that memory is short. Returns -1. */
int diff_no_memory(struct error *err);

#endif
