/* vote_rounds.h: what the members of a communicator did in the iterations that ended last: who
 * stepped which optimizer.
 *
 * The votes on an iteration are kept until all members have voted, but no more than
 * VOTE_ROUNDS_MAX: a member that is further behind is not compared. */
#ifndef DDPCHECK_VOTE_ROUNDS_H
#define DDPCHECK_VOTE_ROUNDS_H

#include "analyzer/model/model.h"

enum { VOTE_ROUNDS_MAX = 1024, VOTE_ROUND_SIDES_MAX = 4 };

/* Members that stepped one optimizer equally often. */
struct vote_round_side {
    uint32_t count;       /* steps */
    struct rankset ranks; /* in the communicator */
    struct site site;     /* of an example: its last step, or the end of its iteration */
};

struct vote_round {
    bool numbered;
    uint64_t key;         /* number or ordinal of the iteration */
    uint64_t model, text; /* the optimizer; text: string id of its range */
    uint32_t backwards;   /* of the first that came: others are compared if they had as many */
    struct vote_round_side side[VOTE_ROUND_SIDES_MAX];
    int sides;
    uint32_t votes, finding;
};

/* A member's iteration in which it stepped the optimizer `count` times. */
struct vote {
    const struct member *member;
    bool numbered;
    uint64_t key, model, text;
    uint32_t backwards, count;
    struct site site;
};

/* Zero-initialised is empty. */
struct vote_rounds {
    struct vote_round *vote_round; /* oldest first */
    uint32_t count, capacity;
};

/* Enters it. Returns the votes on that iteration and optimizer, valid until the next call; NULL if
 * the vote can't be compared with those before it, or with errno = ENOMEM. */
struct vote_round *vote_rounds_enter(struct vote_rounds *vote_rounds, const struct comm *comm,
                                     const struct vote *vote);
/* Frees what they hold. */
void vote_rounds_clear(struct vote_rounds *vote_rounds);

#endif
