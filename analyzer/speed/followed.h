/* followed.h: what comes behind operations where no kernels are recorded. For analyzer/speed. */
#ifndef DDPCHECK_SPEED_FOLLOWED_H
#define DDPCHECK_SPEED_FOLLOWED_H

#include "analyzer/speed/ranks.h"

enum {
    LOOK_AROUND = 8,    /* operations that may begin while one runs */
    AT_ONCE_NS = 20000, /* behind the previous on its stream: it was queued */
    ROUNDED_NS = 2000   /* times of some sources are whole microseconds */
};

/* It began as its communicator's previous operation ended: it was in the queue, whatever the
 * program waited for. */
bool operation_was_queued(struct speed_rank *rank, const struct speed_operation *operation,
                          uint64_t serial);
/* The next of its communicator in the iteration; NULL: it is the last. */
const struct speed_operation *operation_next_of_comm(struct speed_rank *rank, uint64_t serial);
/* Whether the rank waits for its end, by what came behind such operations so far. */
bool operation_can_be_waited_for(const struct speed_operation *operation, bool has_next);
/* Counts what comes behind the operations of the iteration rank->followed.iteration: of all ranks,
 * before any is judged by it. Goes on to the next number. Returns whether the rank has any. */
bool operation_count_iteration(struct speed_rank *rank);

#endif
