/* loop_divergence.h: the members of a communicator by where they were in their training loops when
 * they made one operation, for the checks that find that they were not all at the same place. */
#ifndef DDPCHECK_LOOP_DIVERGENCE_H
#define DDPCHECK_LOOP_DIVERGENCE_H

#include "analyzer/findings.h"
#include "analyzer/loop/lockstep.h"

enum { LOOP_DIVERGENCE_SIDES_MAX = 4 };

enum loop_divergence_kind {
    LOOP_DIVERGENCE_NONE,
    LOOP_DIVERGENCE_ITERATION, /* in different iterations */
    LOOP_DIVERGENCE_ROUND, /* in different rounds of a sequence that repeats itself: no range marks
                      iterations */
    LOOP_DIVERGENCE_MICRO_STEP, /* in different micro-steps of one */
    LOOP_DIVERGENCE_MODEL       /* in the reductions of different models */
};

struct loop_divergence_side {
    struct arrival example;
    struct rankset ranks; /* in the communicator */
};

struct loop_divergence {
    enum loop_divergence_kind kind;
    uint64_t number;
    struct loop_divergence_side side[LOOP_DIVERGENCE_SIDES_MAX];
    int sides;
    bool mismatch; /* the calls themselves do not match */
    bool failed;   /* memory was short */
    /* Side i has shown that it is comparable. LOOP_DIVERGENCE_MODEL: it has issued the other's
     * model as well, later. LOOP_DIVERGENCE_MICRO_STEP: its iteration had as many micro-steps as
     * the other's. */
    bool seen[2];
    uint32_t finding;
    /* LOOP_DIVERGENCE_ROUND: the round as it was then. */
    uint32_t round, place;
    uint64_t round_begin, round_first;
};

/* Two members part at this meeting: its first, with all who came before `other`, and `other`. NULL:
 * ENOMEM. */
struct loop_divergence *loop_divergence_new(enum loop_divergence_kind kind, const struct comm *comm,
                                            const struct meeting *meeting,
                                            const struct arrival *other);
/* One more comes to the operation. */
void loop_divergence_join(struct loop_divergence *loop_divergence, const struct arrival *arrival);
void loop_divergence_free(struct loop_divergence *loop_divergence);

/* A draft with a side for each of the divergence's, most ranks first; `describe` says what
 * was done beside the call. */
struct draft loop_divergence_draft(
    const struct loop_divergence *loop_divergence, const struct check *check,
    const struct comm *comm,
    struct act (*describe)(const struct loop_divergence *loop_divergence,
                           const struct arrival *arrival));
/* The example whose ranks are side i of the draft. */
const struct arrival *loop_divergence_example(const struct loop_divergence *loop_divergence,
                                              int side);
/* Reports it, or puts it in the place of what was reported. */
void loop_divergence_report(struct analyzer *analyzer, struct loop_divergence *loop_divergence,
                            struct draft *draft);

#endif
