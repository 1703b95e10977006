/* diff_speed.h: how fast two traces' ranks and communicators were, and where that differs by more
 * than it varies within a trace. */
#ifndef DDPCHECK_DIFF_SPEED_H
#define DDPCHECK_DIFF_SPEED_H

#include "cmd/diff/diff_pair.h"
#include "lib/base/rankset.h"

struct speed_difference {
    enum spread_of what;
    struct rankset ranks;  /* whose difference it is; for a communicator its members on side 0 */
    uint64_t comm[2];      /* of a communicator, else 0 */
    double value_s[2];     /* medians, of the first of the ranks */
    double iteration_s[2]; /* length of its iterations */
};

struct diff_speed {
    struct speed_difference *difference;
    int differences;
};

/* Compares equal ranks and paired communicators, or `rank` and `with` where they are given (not
 * -1). Returns 0, or -1 when memory is short. */
int diff_speed(struct diff_speed *speed, const struct diff_pairs *pairs,
               struct diff_side *const side[2], int rank, int with);
void diff_speed_free(struct diff_speed *speed);

#endif
