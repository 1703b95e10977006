/* redops.h: the operators that ncclRedOpCreatePreMulSum made, of each process.
 *
 * The newest REDOPS_KEPT; of an older one nothing is known any more, and redop_find says so. */
#ifndef DDPCHECK_REDOPS_H
#define DDPCHECK_REDOPS_H

#include "analyzer/engine.h"

enum { REDOPS_KEPT = 4096 };

struct redop_made {
    uint64_t comm, handle;
    bool destroyed;
};

/* LEAVE of ncclRedOpCreatePreMulSum, ENTER of ncclRedOpDestroy. ENGINE_*. */
int redops_feed(struct event *event);
/* The operator with this handle: of this communicator if there is one, else of another; NULL: none.
 */
const struct redop_made *redop_find(const struct process *process, uint64_t comm, uint64_t handle);
/* All that were made are kept. */
bool redops_complete(const struct process *process);

#endif
