/* different_counts.h: a count of 0 on some ranks only. */
#ifndef DDPCHECK_DC102_EMPTY_H
#define DDPCHECK_DC102_EMPTY_H

#include "analyzer/match/window.h"

struct analyzer;

/* Where members part at `number`: if one of them called with no elements what `peers` called with
 * some, reports that (in the place of *finding, if that is not 0). Returns whether there
 * is such a member. */
bool empty_report(struct analyzer *analyzer, struct comm *comm, uint64_t number,
                  const struct variant *peers, uint32_t *finding);

#endif
