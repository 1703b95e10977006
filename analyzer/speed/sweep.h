/* sweep.h: how a stretch of time divides. */
#ifndef DDPCHECK_SPEED_SWEEP_H
#define DDPCHECK_SPEED_SWEEP_H

#include "analyzer/speed/speed.h"

/* An edge of an interval: `change` is +1 where one of this share begins, -1 where it ends. */
struct speed_edge {
    uint64_t time_ns;
    int change;
    enum share share;
    bool meets; /* of a wait: in a collective */
};

/* Sorts the edges and adds to to->share[] the seconds between begin_ns and end_ns in which an
 * interval of it, and none of a smaller share, is open; likewise to->met. */
void speed_sweep(struct speed_edge *edge, size_t edges, uint64_t begin_ns, uint64_t end_ns,
                 struct speed_iteration *to);

#endif
