/* parting.h: the members of a communicator by where they were in their training loops when they
 * made one operation, for the checks that find that they were not all at the same place. */
#ifndef DDPCHECK_PARTING_H
#define DDPCHECK_PARTING_H

#include "analyzer/findings.h"
#include "analyzer/loop/lockstep.h"

enum { PARTING_SIDES_MAX = 4 };

enum parting_kind {
    PARTING_NONE,
    PARTING_ITERATION,  /* in different iterations */
    PARTING_ROUND,      /* in different rounds of a sequence that repeats itself: no range tells
                           iterations */
    PARTING_MICRO_STEP, /* in different micro-steps of one */
    PARTING_MODEL       /* in the reductions of different models */
};

struct parting_side {
    struct arrival example;
    struct rankset ranks; /* in the communicator */
};

struct parting {
    enum parting_kind kind;
    uint64_t number;
    struct parting_side side[PARTING_SIDES_MAX];
    int sides;
    bool mismatch; /* the calls themselves do not match */
    bool failed;   /* memory was short */
    /* Side i has shown that it is comparable. PARTING_MODEL: it has issued the other's model as
     * well, later. PARTING_MICRO_STEP: its iteration had as many micro-steps as the other's. */
    bool seen[2];
    uint32_t finding;
    /* PARTING_ROUND: the round as it was then. */
    uint32_t round, place;
    uint64_t round_begin, round_first;
};

/* Two members part at this meeting: its first, with all who came before `other`, and `other`. NULL:
 * ENOMEM. */
struct parting *parting_new(enum parting_kind kind, const struct comm *comm,
                            const struct meeting *meeting, const struct arrival *other);
/* One more comes to the operation. */
void parting_join(struct parting *parting, const struct arrival *arrival);
void parting_free(struct parting *parting);

/* A draft with a side for each of the parting's, most ranks first; `describe` says what
 * was done beside the call. */
struct draft parting_draft(const struct parting *parting, const struct check *check,
                           const struct comm *comm,
                           struct act (*describe)(const struct parting *parting,
                                                  const struct arrival *arrival));
/* "ranks 0-2", of side i of the draft. Returns text. */
char *draft_ranks_text(const struct draft *draft, int side, char *text, size_t bytes);
/* The example whose ranks are side i of the draft. */
const struct arrival *parting_example(const struct parting *parting, int side);
/* Reports it, or puts it in the place of what was reported. */
void parting_report(struct analyzer *analyzer, struct parting *parting, struct draft *draft);

#endif
