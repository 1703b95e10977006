/* ballots.h: what the members of a communicator did in the iterations that ended last: who stepped
 * which optimizer.
 *
 * An iteration's ballot is kept until all members have voted, but no more than BALLOTS_MAX: a
 * member that is further behind is not compared. */
#ifndef DDPCHECK_BALLOTS_H
#define DDPCHECK_BALLOTS_H

#include "analyzer/model/model.h"

enum { BALLOTS_MAX = 1024, BALLOT_SIDES_MAX = 4 };

/* Members that stepped one optimizer equally often. */
struct ballot_side {
    uint32_t count;       /* steps */
    struct rankset ranks; /* in the communicator */
    struct site site;     /* of an example: its last step, or the end of its iteration */
};

struct ballot {
    bool numbered;
    uint64_t key;         /* number or ordinal of the iteration */
    uint64_t model, text; /* the optimizer; text: string id of its range */
    uint32_t backwards;   /* of the first that came: others are compared if they had as many */
    struct ballot_side side[BALLOT_SIDES_MAX];
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
struct ballots {
    struct ballot *ballot; /* oldest first */
    uint32_t count, capacity;
};

/* Enters it. Returns the ballot of that iteration and optimizer, valid until the next call; NULL if
 * the vote can't be compared with those before it, or with errno = ENOMEM. */
struct ballot *ballots_enter(struct ballots *ballots, const struct comm *comm,
                             const struct vote *vote);
/* Frees what they hold. */
void ballots_clear(struct ballots *ballots);

#endif
