/* neighbours.h: the ranks as a ring, in which each sends the next one its losses
 * (--exchange-every).
 *
 * NCCL's send is done when its peer receives, so that ranks that all send first wait for each other
 * for ever. In one group both run at the same time (NCCL user guide, "Point-to-point
 * communication"); in other libraries that is isend and irecv, or batch_isend_irecv. */
#ifndef DDPTRAIN_NEIGHBOURS_H
#define DDPTRAIN_NEIGHBOURS_H

#include <stdbool.h>

#include "trainer/communicator.h"

/* The rank whose values come. */
int neighbours_previous(const struct communicator *communicator);

/* Sends `count` host values to the next rank and overwrites them with those of the previous one.
 * Blocks the host until they are there. `in_group` must be true: false is the mistake of the
 * p2p-cycle fault. */
void neighbours_exchange(struct communicator *communicator, float *values, int count,
                         bool in_group);

#endif
