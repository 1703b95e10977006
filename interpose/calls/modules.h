/* modules.h: telling the collector which file is mapped where (notice_module), so that it can turn
 * return addresses into names long after the process is gone. */
#ifndef DDPCHECK_MODULES_H
#define DDPCHECK_MODULES_H

#include "interpose/record/thread.h"

/* Tells of every executable mapping that was not told yet. */
void modules_tell(struct thread *thread);

/* Makes sure that the mapping of `address` was told. */
void modules_cover(struct thread *thread, uint64_t address);

#endif
