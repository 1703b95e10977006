/* kineto_group.h: the process groups of one Kineto trace, and which rank in each the trace's
 * process is. */
#ifndef DDPCHECK_KINETO_GROUP_H
#define DDPCHECK_KINETO_GROUP_H

#include <uthash.h>

#include "lib/import/kineto_event.h"

struct kineto_group {
    char *key; /* the same on all its ranks: name, size and ranks */
    int index;
    char *name, *ranks; /* ranks: as kineto_ranks_read gives them, "" not known */
    int64_t size, start, stride;
    int64_t said;  /* the process's rank in it, as its calls say; KINETO_UNKNOWN */
    int member;    /* the reader's; -1 none yet, -2 its rank can't be known */
    int64_t seq;   /* of its last collective */
    uint32_t part; /* how many before had the same */
    UT_hash_handle hh;
};

struct kineto_groups {
    struct kineto_group *table, **by_index;
    int count;
    /* distributedInfo.pg_config: ranks by name, where the calls do not name all */
    struct kineto_config {
        char *name, *ranks;
        UT_hash_handle hh;
    } * config;
};

enum { KINETO_GROUPS_MAX = 1 << 16 };

/* The group of a call; NULL when memory is short or there are too many. */
struct kineto_group *kineto_group_of(struct kineto_groups *groups,
                                     const struct kineto_event *event);
/* Notes what distributedInfo says of a group. Returns 0, or -1 when memory is short. */
int kineto_group_config(struct kineto_groups *groups, const char *name, const char *ranks);
/* The rank in the group of the process of rank `rank` (KINETO_UNKNOWN if that is not known); -1 if
 * it can't be known. */
int kineto_group_own_rank(const struct kineto_groups *groups, const struct kineto_group *group,
                          int64_t rank);
void kineto_groups_free(struct kineto_groups *groups);

#endif
