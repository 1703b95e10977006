/* own_steps.c: ranks that are slower than they were, where they have no peers to be compared with.
 */
#include <math.h>
#include <stdlib.h>

#include "analyzer/speed/reason.h"

enum { RISE_PERCENT = 50 }; /* of the largest rise, or of the job's: a rank's own work rose, too */

/* How much longer a rank's own work takes since a step, and what of it is longest. */
struct own_rise {
    double all, idle;
    double times;  /* as long as before, less one */
    bool has_more; /* kernels, operations or bytes */
};

static struct own_rise own_rise_of(const struct judged *judged, const struct speed_rank *rank)
{
    struct judged past = *judged;
    past.first = judged->begin;
    past.end = judged->since;
    struct means now = slowdown_means_of(judged, rank), then = slowdown_means_of(&past, rank);
    double idle = now.idle - then.idle, before = then.idle + then.queued + then.compute;
    double all = now.idle + now.queued + now.compute - before;
    return (struct own_rise){all, idle, before > 0 ? all / before : 0,
                             slowdown_is_more(now.kernels, then.kernels) ||
                                 slowdown_is_more(now.operations, then.operations) ||
                                 slowdown_is_more(now.bytes, then.bytes)};
}

/* It costs less than it rose by, because another rank is about as slow. */
static bool is_found(const struct slowdowns *found, const struct speed_rank *rank)
{
    bool is_found = false;
    for (uint32_t i = 0; i < found->count && !is_found; i++) {
        const struct slowdown *slowdown = &found->slowdown[i];
        bool is_of_rank = slowdown->kind < SLOW_LINK && slowdown->ranks == 1 &&
                          slowdown->rank[0] == rank;
        is_found = is_of_rank && slowdown->gain.is_known &&
                   100 * slowdown->gain.seconds >= SHARE_PERCENT * slowdown->length;
    }
    return is_found;
}

/* Where a rank has no peers to be compared with, as in a pipeline of single ranks, its own past is.
 */
bool judge_own_steps(const struct judged *judged, const struct slowdown *step,
                     struct slowdowns *found)
{
    uint32_t count = judged->speed->count, from = found->count;
    struct own_rise *rise = calloc(count + 1, sizeof *rise);
    double most = 0, times = 0;
    uint32_t risen = 0;
    for (uint32_t r = 0; rise && r < count; r++) {
        rise[r] = own_rise_of(judged, judged->speed->rank[r]);
        times = rise[r].all > most ? rise[r].times : times;
        most = fmax(most, rise[r].all);
    }
    for (uint32_t r = 0; rise && r < count; r++)
        risen += 100 * rise[r].all >= RISE_PERCENT * most ||
                 100 * rise[r].times >= RISE_PERCENT * times;
    bool is_single = rise && 2 * risen <= count && 100 * most >= RISE_PERCENT * step->lost;
    for (uint32_t r = 0; is_single && r < count; r++) {
        const struct speed_rank *rank = judged->speed->rank[r];
        bool is_host = 2 * rise[r].idle > rise[r].all;
        struct slowdown slowdown = *step;
        if (100 * rise[r].all < RISE_PERCENT * most || is_found(found, rank))
            continue;
        slowdown.rank = &rank;
        slowdown.ranks = 1;
        slowdown.lost = fmin(rise[r].all, step->lost);
        slowdown.kind = rise[r].has_more ? SLOW_WORK : SLOW_DEVICE;
        if (is_host)
            slowdown.kind = SLOW_HOST;
        slowdowns_add_rank(judged, found, from, &slowdown);
    }
    found->failed |= !rise;
    free(rise);
    return is_single;
}
