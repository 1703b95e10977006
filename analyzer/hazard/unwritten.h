/* unwritten.h: which bytes of an allocation something has written since it was made, as far as that
 * can be known.
 *
 * Kept for device memory whose allocation was seen: a few stretches, after which the rest counts as
 * written. A kernel that is given a pointer into the allocation counts as writing all of it. */
#ifndef DDPCHECK_UNWRITTEN_H
#define DDPCHECK_UNWRITTEN_H

#include "analyzer/model/model.h"

/* The allocation is new. Without memory for it nothing is watched. */
void unwritten_watch(struct allocation *allocation);
void unwritten_forget(struct allocation *allocation);
/* [begin, end) was written, or any part of the allocation around `begin`. */
void unwritten_wrote(struct process *process, uint64_t begin, uint64_t end);
void unwritten_wrote_all(struct process *process, uint64_t pointer);
/* Something may have written anywhere: true of all allocations there are. */
void unwritten_wrote_anything(struct process *process);
/* Nothing has written any byte of [begin, end), which lies in one allocation that is watched. */
const struct allocation *unwritten_find(const struct process *process, uint64_t begin,
                                        uint64_t end);

#endif
