/* dormant.h: ranks that run under the shim and have made no NCCL call yet (notice_dormant). */
#ifndef DDPCHECK_DORMANT_H
#define DDPCHECK_DORMANT_H

#include "analyzer/hang/where.h"

/* One that has made no call: rank -1 if that is not known. */
struct dormant_place {
    int rank, pid;
    const char *place;
    const struct process *reporter;
};

/* A place that replaces the rank's last one; none: it is gone, or its calls are recorded now.
 * ENGINE_*. */
int dormant_note(struct event *event);
/* Where a rank that is missing in the communicator is. Leaves *where as it is if something of it
 * was recorded, if nothing is known of it, or if the communicator is not as large as the job. */
void dormant_find(const struct analyzer *analyzer, const struct comm *comm,
                  const struct missing *missing, struct where *where);
void dormant_free(struct analyzer *analyzer);
/* The index-th of them (below analyzer->dormants.count) as it is known; false: it is gone, or has
 * called NCCL since. */
bool dormant_find_place(const struct analyzer *analyzer, uint32_t index,
                        struct dormant_place *place);

#endif
