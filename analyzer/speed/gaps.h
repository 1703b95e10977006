/* gaps.h: between which of its calls a process does something else, for analyzer/speed. */
#ifndef DDPCHECK_SPEED_GAPS_H
#define DDPCHECK_SPEED_GAPS_H

#include "analyzer/speed/speed.h"

/* A place in the program: a call. */
struct host_call {
    uint64_t stack;
    bool stack_is_address;
    uint16_t api;
};

/* From where one call returned until the next was made, with no other thread in a call. */
struct host_gap {
    struct host_call from, to;
    double seconds; /* in all */
    uint64_t count;
};

/* A call begins or ends. Notes want of memory in the analyzer. */
void speed_host_call(struct analyzer *analyzer, const struct thread *thread,
                     const struct record *record);
/* Between which calls most of the time of the rank's host passes, again and again; NULL if that is
 * not known. */
const struct host_gap *speed_longest_gap(const struct speed *speed, const struct speed_rank *rank);

#endif
