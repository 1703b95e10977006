/* kineto_stage.h: the events of one file that concern collectives, brought into the order of time
 * and joined with their kernels, outside of memory: a file's events lie thread by thread, and
 * kernels behind the calls.
 *
 * A temporary database of SQLite's does both. Memory stays at a few MB whatever the file. */
#ifndef DDPCHECK_KINETO_STAGE_H
#define DDPCHECK_KINETO_STAGE_H

#include "lib/import/kineto_event.h"

struct kineto_stage;

/* A call, an annotation beside it, the begin or end of its kernels, or other work that has ended,
 * in the order of time. */
struct kineto_row {
    enum { ROW_CALL, ROW_ALONE, ROW_COALESCED, ROW_BEGIN, ROW_END, ROW_WORK } kind;
    int64_t ts_ns, tid;
    int64_t external; /* CALL, BEGIN, END: which call */
    const struct kind_name *collective;
    int group; /* as given to kineto_stage_call */
    int64_t in, out, rank, seq, send, recv;
    enum datatype datatype;
    bool split;      /* of unequal parts */
    bool wraps;      /* another call was made inside of it: that one is the operation */
    bool has_kernel; /* then: */
    int64_t device;
    int64_t begin_ns; /* WORK: it ended at ts_ns */
    const char *name; /* WORK: its kernel; valid while the row is visited */
};

/* Returns 0, or -1 with err. */
int kineto_stage_new(struct kineto_stage **stage, struct error *err);
void kineto_stage_free(struct kineto_stage *stage);

/* Keep an event. Return 0, or -1 with err. */
int kineto_stage_call(struct kineto_stage *stage, const struct kineto_event *event, int group,
                      struct error *err);
int kineto_stage_mark(struct kineto_stage *stage, const struct kineto_event *event,
                      struct error *err);
int kineto_stage_kernel(struct kineto_stage *stage, const struct kineto_event *event,
                        struct error *err);
int kineto_stage_work(struct kineto_stage *stage, const struct kineto_event *event,
                      struct error *err);
int kineto_stage_launch(struct kineto_stage *stage, const struct kineto_event *event,
                        struct error *err);

/* When all is kept: finds the call of each kernel, by "External id"; where that is missing, is no
 * call's, or is only the kernel's own number again (older files), by the launch of the same
 * "correlation" inside of a call. *joined, *lonely: kernels whose call was found and was not.
 * Returns 0, or -1 with err. */
int kineto_stage_join(struct kineto_stage *stage, uint64_t *joined, uint64_t *lonely,
                      struct error *err);

/* After kineto_stage_join: calls `visit` for each row until it returns something else than 0.
 * Returns that, 0, or -1 with err. */
int kineto_stage_visit(struct kineto_stage *stage,
                       int (*visit)(void *context, const struct kineto_row *row), void *context,
                       struct error *err);

#endif
