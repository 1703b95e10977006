/* gone.h: which communicators every member destroyed, and which of these were forgotten
 * (forgotten.h). */
#ifndef DDPCHECK_GONE_H
#define DDPCHECK_GONE_H

#include "analyzer/engine.h"

enum {
    /* Half a megabyte; with 46 new communicators a second, a training loop that makes one in every
     * step, it covers 20 minutes. */
    IDENTITIES = 1 << 16
};

struct forgotten {
    struct comm *first, *last; /* that every member destroyed, the oldest first */
    uint64_t count;            /* of these */
    uint64_t gone, most_used; /* destroyed since the start; the most that were in use at one time */
    uint64_t total;           /* forgotten since the start */
    struct comm *shells;
    uint64_t shell_count, swept; /* shells; those that the last sweep left */
    uint64_t identity[IDENTITIES];
};

/* Every member that is known has destroyed the communicator. 0, or -1 when memory is short. */
int forgotten_expect(struct analyzer *analyzer, struct comm *comm);
/* Another member came. */
void forgotten_recall(struct analyzer *analyzer, struct comm *comm);
/* A communicator with this identity was forgotten, not too long ago. */
bool forgotten_has(const struct analyzer *analyzer, uint64_t comm);
/* Something refers to the communicator: its shell stays. */
void forgotten_hold(struct comm *comm);
/* It is forgotten. */
void gone_note_identity(struct forgotten *forgotten, uint64_t comm);

#endif
