/* standings.h: how each rank stands beside its peers, kept for readers that can't replay. */
#ifndef DDPCHECK_SPEED_STANDINGS_H
#define DDPCHECK_SPEED_STANDINGS_H

#include "analyzer/speed/slowdown.h"

enum { TREND_COLUMNS = 16 }; /* of a rank's lag over time */

struct speed_standings;

/* Keeps what was judged in place of what was kept before: each rank's own time beyond its peers',
 * and who is named in `found`, as far as that is reported. 0 or -1 (ENOMEM). */
int speed_keep_standings(struct speed *speed, const struct judged *judged,
                         const struct slowdowns *found);
void speed_standings_free(struct speed_standings *standings);

#endif
