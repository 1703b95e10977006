/* divergence.h: the first place where the members of a communicator part, kept after it left the
 * window. */
#ifndef DDPCHECK_DIVERGENCE_H
#define DDPCHECK_DIVERGENCE_H

#include "analyzer/match/other_comm.h"

enum { LOOK_AHEAD = 8 }; /* operations after it that say whether a rank skipped or doubled a call */

struct divergence {
    uint64_t number;
    uint32_t finding;             /* id, 0 none */
    uint32_t reported;            /* members that had issued it when the finding was made last */
    bool stale;                   /* more have since */
    int shift[FINDING_SIDES_MAX]; /* side i of the finding is this many calls ahead of (> 0) or
                                     behind (< 0) side 0 */
    struct other_call intended; /* of the side that is no side 0, if it made it on this communicator
                                   by mistake; or of side 0, if of_first */
    bool of_first;
    struct slot slot[1 + LOOK_AHEAD];
};

void divergence_free(struct divergence *divergence);
/* Makes comm->slot.divergence begin at `number`, with what the window has from there. 0 or -1
 * (ENOMEM).
 */
int divergence_begin(struct comm *comm, uint64_t number);
/* The member has issued `number`: takes that over from the window, if it is one of those kept. 0 or
 * -1 (ENOMEM). */
int divergence_follow(struct comm *comm, uint64_t number, const struct member *member);
/* A finding that was made when `reported` members had issued the number is to be made again: all
 * have, or twice as many. Making it costs as much as there are members, and each comes once. */
bool divergence_is_due(const struct comm *comm, uint32_t reported);
/* How far the sequence of the odd rank is shifted against that of the other: at least two calls in
 * a row that agree after it, and all that is known. 0: not, or not known. */
int divergence_shift(const struct comm *comm, int odd_rank, int other_rank);

#endif
