/* period.h: the round in which a communicator's operations repeat themselves, where nothing marks
 * its iterations.
 *
 * The sequence of signatures is read as its first comers make it. After three equal rounds of 2 to
 * ROUND_MAX operations the round is known, until an operation breaks it (an evaluation, buckets
 * that are rebuilt): then it is looked for anew. It begins where the repetition began, which is
 * after the set-up, whose operations differ. */
#ifndef DDPCHECK_PERIOD_H
#define DDPCHECK_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

enum { ROUND_MAX = 64, ROUNDS_PROOF = 3, PERIOD_SEEN = 256 };

struct round {
    uint32_t operations;      /* in it; 0: none was found */
    uint64_t begin, until;    /* the numbers that it holds for */
    uint64_t hash[ROUND_MAX]; /* of its operations */
};

struct period {
    uint64_t next;              /* number that comes next; a gap starts anew */
    uint64_t seen[PERIOD_SEEN]; /* hashes, ring by number */
    uint64_t first;             /* of `seen` */
    uint64_t equal;             /* operations in a row that are as the last: no round is so short */
    bool locked;                /* the round goes on */
    struct round round[2];      /* this one and the previous: members that lag may still be in it */
};

/* The first member comes to operation `number`, with a signature of this hash. */
void period_feed(struct period *period, uint64_t number, uint64_t hash);
/* The round that held for all before `number`, for ROUNDS_PROOF rounds at least; NULL if there is
 * none. Then *place is what number would be in it. */
const struct round *period_place(const struct period *period, uint64_t number, uint32_t *place);

#endif
