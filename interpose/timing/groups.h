/* groups.h: the launches of ncclGroups that have not run yet, by the group's number.
 *
 * A program's thread puts a group in, and the timing thread finds it. There are no locks: where a
 * later group takes a place, the earlier one is gone. */
#ifndef DDPCHECK_TIMING_GROUPS_H
#define DDPCHECK_TIMING_GROUPS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "interpose/shim/thread.h"

enum {
    GROUP_RING = 1024,
    GROUP_WORDS = (sizeof(struct timed_launches) + sizeof(uint64_t) - 1) / sizeof(uint64_t)
};

/* Zero-initialised. */
struct timed_groups {
    struct timed_group {
        _Atomic uint64_t number;            /* + 1; 0 none; GROUP_WRITTEN while it is written */
        _Atomic uint64_t word[GROUP_WORDS]; /* its struct timed_launches */
    } group[GROUP_RING];
};

/* False: another thread writes there, or a later group is there already. */
bool timed_groups_put(struct timed_groups *groups, uint64_t number,
                      const struct timed_launches *launches);
/* Copies the group's launches. False: a later group took its place, maybe while they were read. */
bool timed_groups_find(struct timed_groups *groups, uint64_t number,
                       struct timed_launches *launches);

#endif
