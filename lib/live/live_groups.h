/* live_groups.h: threads of running processes that stand alike, as one group. */
#ifndef DDPCHECK_LIVE_GROUPS_H
#define DDPCHECK_LIVE_GROUPS_H

#include "lib/base/rankset.h"
#include "lib/live/live.h"

struct live_group {
    const struct live_process *process; /* whose thread stands for the group */
    const struct live_thread *first;
    bool is_main;
    struct frame *frame; /* its frames as they are shown */
    int frames;
    char called[256];           /* the library function that it is in; "" none */
    struct rankset ranks, pids; /* of the processes; pids that have no rank are in pids alone */
    int threads;
    bool all_have_ranks;
};

/* The groups of all threads of `processes`: main threads first, then the larger ones. every_frame:
 * also those of libraries and of Python itself. The processes must live as long. Returns how many
 * (live_groups_free them), -1 when memory is short. */
int live_groups(const struct live_process *processes, int count, bool every_frame,
                struct live_group **groups);
void live_groups_free(struct live_group *groups, int count);

#endif
