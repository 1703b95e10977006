/* dormant.h: ranks that run under the shim and have made no NCCL call yet (notice_dormant). */
#ifndef DDPCHECK_DORMANT_H
#define DDPCHECK_DORMANT_H

#include "analyzer/hang/where.h"

/* A place that replaces the rank's last one; none: it is gone, or its calls are recorded now. */
void dormant_note(struct analyzer *analyzer, const struct process *process,
                  const struct record *record);
/* Where a rank that is missing in the communicator is. Leaves *where as it is if something of it
 * was recorded, if nothing is known of it, or if the communicator is not as large as the job. */
void dormant_find(const struct analyzer *analyzer, const struct comm *comm,
                  const struct missing *missing, struct where *where);
void dormant_free(struct analyzer *analyzer);
/* What the index-th of them (below analyzer->dormants) does. Returns its rank, -1 if it has called
 * NCCL since. */
int dormant_act(const struct analyzer *analyzer, uint32_t index, struct act *act);

#endif
