/* pending_index.h: finds what a member has issued among the operations that are not done. Made for
 * one wait graph. */
#ifndef DDPCHECK_PENDING_INDEX_H
#define DDPCHECK_PENDING_INDEX_H

#include "analyzer/engine.h"

struct pending_index;

/* NULL with errno = ENOMEM. */
struct pending_index *pending_index_new(const struct analyzer *analyzer);
void pending_index_free(struct pending_index *index);

/* The member's collective `number` (channel NULL), or its send or receive on a channel. *found is
 * NULL if it is done, or was never issued. 0, or -1 with errno = ENOMEM. */
int pending_index_find(struct pending_index *index, const struct member *member,
                       const struct channel *channel, bool receives, uint64_t number,
                       const struct pending **found);

#endif
