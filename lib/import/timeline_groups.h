/* timeline_groups.h: which ranks the groups of a timeline have. */
#ifndef DDPCHECK_IMPORT_TIMELINE_GROUPS_H
#define DDPCHECK_IMPORT_TIMELINE_GROUPS_H

#include "lib/import/timeline.h"

struct timeline_group {
    int32_t *rank; /* world ranks, ascending; NULL: no group (compute) */
    int32_t ranks;
};

/* By the index of the name (timeline->groups): the ranks that the name lists ("0-3", "0 4 8",
 * "[0, 4]"), or else those whose rows name it. NULL when memory is short. */
struct timeline_group *timeline_groups_new(const struct foreign_timeline *timeline);
void timeline_groups_free(struct timeline_group *groups, uint32_t count);
/* The place of a world rank among the group's, -1 if it is none of them. */
int timeline_group_find(const struct timeline_group *group, int32_t rank);

#endif
