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

/* A stretch of time and what counts of it; SHARES: nothing runs, and nothing is queued. */
struct speed_piece {
    uint64_t begin_ns, end_ns;
    int share;
};

/* Sorts the edges and adds to each to->share[] the seconds between begin_ns and end_ns in which an
 * interval of that share, and none of a smaller share, is open; to->met gets those in which such an
 * interval meets. Fills in the pieces between the edges, no more than there are edges;
 * returns their number. */
size_t speed_sweep(struct speed_edge *edge, size_t edges, uint64_t begin_ns, uint64_t end_ns,
                   struct speed_iteration *to, struct speed_piece *piece);

#endif
