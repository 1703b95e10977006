/* modules.h: emits which file is mapped where (notice_module), so that the collector can turn
 * return addresses into names long after the process is gone. */
#ifndef DDPCHECK_MODULES_H
#define DDPCHECK_MODULES_H

#include "interpose/shim/thread.h"

/* Emits every executable mapping that was not emitted yet. */
void modules_record(struct shim_thread *thread);

/* Makes sure that the mapping of `address` was emitted. */
void modules_cover(struct shim_thread *thread, uint64_t address);

/* In the child of a fork. */
void modules_forked(void);

#endif
