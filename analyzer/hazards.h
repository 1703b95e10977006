/* hazards.h: what checks/dc301_writes.c keeps of one process. */
#ifndef DDPCHECK_HAZARDS_H
#define DDPCHECK_HAZARDS_H

struct hazards;

/* NULL is allowed. */
void hazards_free(struct hazards *hazards);

#endif
