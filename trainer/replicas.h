/* replicas.h: marks for ddpcheck which buffers must be equal on all ranks (interpose/ddpcheck.h):
 * under `ddpcheck run --hash` it compares them after each step. Costs a comparison otherwise. */
#ifndef DDPTRAIN_REPLICAS_H
#define DDPTRAIN_REPLICAS_H

#include "trainer/distributed.h"

/* The parameters, as the compute stream leaves them. Every rank that takes a step calls it. */
void replicas_announce(const struct distributed *ranks);

#endif
