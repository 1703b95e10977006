/* one_sided.h: puts, signals and waits for signals: work on a stream that no other member takes
 * part in. In a group they do not wait for its other calls. */
#ifndef DDPCHECK_EMU_NCCL_ONE_SIDED_H
#define DDPCHECK_EMU_NCCL_ONE_SIDED_H

#include <nccl.h>

#include "emu/nccl/task.h"

/* Moves them behind all other tasks, the waits last, each in order. Returns how many others. */
size_t one_sided_sort(struct task *tasks, size_t count);
/* Pushes them on their streams. What they own is handed over, or freed if that fails. */
ncclResult_t one_sided_push(struct ncclComm *comm, const struct task *tasks, size_t count);

#endif
