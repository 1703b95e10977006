/* freed.h: memory that was freed and not given out again since. Bounded: the oldest goes, which can
 * only hide a use. */
#ifndef DDPCHECK_FREED_H
#define DDPCHECK_FREED_H

#include "analyzer/model/model.h"

/* 0 or -1 (ENOMEM). */
int freed_add(struct process *process, const struct freed *freed);
/* The addresses are in use again. */
void freed_forget(struct process *process, uint64_t begin, uint64_t end);
/* The freed memory that meets [begin, end); NULL if none does. Valid until the next change. */
const struct freed *freed_find(const struct process *process, uint64_t begin, uint64_t end);

#endif
