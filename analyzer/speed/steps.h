/* steps.h: what a rank does in an iteration, in order, for replay.c. For analyzer/speed. */
#ifndef DDPCHECK_SPEED_STEPS_H
#define DDPCHECK_SPEED_STEPS_H

#include "analyzer/speed/ranks.h"
#include "analyzer/speed/sweep.h"

/* Own time, then an operation that the rank arrives at, or whose end it awaits, or both. The last
 * step of an iteration is own time alone. */
struct speed_step {
    uint64_t comm, number; /* which operation; comm 0: none */
    int32_t from, to;      /* of a message: ranks; else -1 */
    float work, idle; /* seconds before it: the rank's own, and when nothing ran or was queued */
    float queued;     /* of `work`: operations were queued, though kernels show that none ran */
    float transfer;   /* seconds of its operation without waiting for others */
    float exposed;    /* seconds that it waited here for the operation's end, as recorded */
    float lasted;     /* seconds of its operation, waiting included */
    float ended;      /* when the operation ended, in seconds of the rank's iteration */
    bool arrives, awaits;
    bool is_queued; /* behind its communicator's operation before it */
    bool receives;  /* a message */
};

/* Keeps the steps of a rank's iteration, if it is one of those that are kept. These lie at equal
 * distances, and all ranks' steps together need no more than a fixed amount of memory.
 * `piece` says what it did when. 0 or -1 (ENOMEM). */
int speed_steps_keep(struct speed *speed, struct speed_rank *rank, uint64_t iteration,
                     const struct speed_piece *piece, size_t pieces);
/* Those of an iteration; NULL: they were not kept. */
const struct speed_step *speed_steps(const struct speed_rank *rank, uint64_t iteration,
                                     uint32_t *count);
void speed_steps_free(struct speed_rank *rank);

#endif
