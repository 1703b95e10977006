/* whatif.h: what the job would gain without each of its slowdowns. For analyzer/speed. */
#ifndef DDPCHECK_SPEED_WHATIF_H
#define DDPCHECK_SPEED_WHATIF_H

#include "analyzer/speed/slowdown.h"

/* Fills in the cost of slow ranks and links: what the judged iterations would be shorter by, had
 * the ranks their peers' own time, or the links' transfers the usual one; the largest gain first,
 * and the others then without it. Adds work that is uneven, and uneven stages of a pipeline, if
 * that costs as much. Where the model does not explain the iterations nothing is changed. */
void judge_gains(struct judged *judged, struct slowdowns *found);

#endif
