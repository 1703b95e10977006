/* issued.h: how many kernels a process has launched on each of its devices, as the records of its
 * operations say (leave.kernels). */
#ifndef DDPCHECK_ISSUED_H
#define DDPCHECK_ISSUED_H

#include "analyzer/model/model.h"

/* An operation of a member on the device was issued. 0 or -1 (ENOMEM). */
int issued_add(struct process *process, int device, const struct record *left);
/* All so far. */
struct issued issued_on(const struct process *process, int device);

/* Notes whether the member made the call before, but never from this stack. Not seen where its
 * calls come from more stacks than 64 bits distinguish. */
void issued_note_way(struct launches *launches, const struct pending *pending);

#endif
