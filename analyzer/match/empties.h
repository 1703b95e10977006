/* empties.h: collectives of no elements. NCCL drops them ("empty collectives can be discarded", its
 * enqueue.cc): they wait for nobody and have no number of their own, but the one of the member's
 * next collective. A rank whose count is 0 where its peers' is not so goes on to its next call
 * alone. */
#ifndef DDPCHECK_EMPTIES_H
#define DDPCHECK_EMPTIES_H

#include "analyzer/model/model.h"

enum { EMPTIES_KEPT = 16 }; /* of one member, the newest */

struct empty_call {
    uint64_t number; /* of the collective that came next */
    struct signature signature;
    struct site site;
};

void empties_free(struct empties *empties);
/* 0, or -1 with errno = ENOMEM. */
int empties_add(struct member *member, uint64_t number, const struct signature *signature,
                const struct site *site);
/* One that the member called just before its collective `number`, of the kind of `signature`; NULL
 * if there is none. */
const struct empty_call *empties_find(const struct member *member, uint64_t number,
                                      const struct signature *signature);

#endif
