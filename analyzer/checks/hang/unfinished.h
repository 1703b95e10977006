/* unfinished.h: what the members of a communicator had issued and not done when their dumps were
 * made. Live, waits.h knows more. */
#ifndef DDPCHECK_UNFINISHED_H
#define DDPCHECK_UNFINISHED_H

#include "analyzer/model/comm.h"

struct unfinished {
    uint64_t number; /* the first that not all have done */
    bool some_done;  /* others have done it */
    bool all_issued; /* every rank of the communicator has a dump that shows its call */
};

/* A dump shows how far the member got. */
bool unfinished_is_known(const struct member *member);
/* False if there is nothing unfinished. */
bool unfinished_find(const struct comm *comm, struct unfinished *found);

/* The member's call of that number, or the first after it (a source may count from 1); NULL if it
 * is not known any more. */
const struct pending *unfinished_call(const struct member *member, uint64_t number);

#endif
