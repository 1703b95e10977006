/* finding_items.h: a finding of a host as the items of a message (lib/job/message.h). */
#ifndef DDPCHECK_FINDING_ITEMS_H
#define DDPCHECK_FINDING_ITEMS_H

#include <stdbool.h>

#include "lib/finding/finding.h"
#include "lib/job/message.h"

/* Whether items have room for it: its ranks are not too many ranges. */
bool finding_items_fit(const struct finding *finding);
/* Leaves out the ranks that items have no room for. Returns 0, or -1 when memory is short. */
int finding_items_cut(struct finding *finding);
/* Adds its sides, and then the finding, to an empty message. */
void finding_items_add(struct message_writer *writer, const struct finding *finding);

/* Reads it again; its processes are the host's. The caller frees it. Returns 1, 0 if it makes no
 * sense to this version, or -1 when memory is short. */
int finding_items_take(struct finding *finding, const struct item_finding *item,
                       const struct item_side *side, int sides);

#endif
