/* level.c: how long iterations are where the source does not say when operations began.
 *
 * There an operation is placed where its host issued it. A host that is ahead of its GPU may be
 * less so in some iterations: they look longer, though nobody waited. As collectives end on all
 * ranks together, such iterations are as long on each rank as on the median one: then a rank's own
 * time differs from others' by what these wait less or more, which is known from durations. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"
#include "lib/trace/lacks.h"

bool speed_is_placed(const struct speed_rank *rank)
{
    return rank->key.process->info.lacks & LACKS_STARTS;
}

static struct speed_iteration *placed_iteration(const struct speed_rank *rank, uint64_t number)
{
    struct speed_iteration *of = rank->iteration ? &rank->iteration[number & (rank->iterations - 1)]
                                                 : NULL;
    return of && of->number == number + 1 && speed_is_placed(rank) ? of : NULL;
}

int speed_level(struct speed *speed, uint64_t closed)
{
    double *length = malloc((speed->count + 1) * sizeof *length);
    uint64_t kept = closed > ITERATIONS_KEPT ? closed - ITERATIONS_KEPT : 0;
    uint64_t first = speed->levelled > kept ? speed->levelled : kept;
    for (uint64_t n = first; length && n < closed; n++) {
        size_t known = 0;
        for (uint32_t r = 0; r < speed->count; r++) {
            const struct speed_iteration *iteration = placed_iteration(speed->rank[r], n);
            if (iteration)
                length[known++] = iteration->length;
        }
        float median = (float)speed_median(length, known);
        for (uint32_t r = 0; r < speed->count && known; r++) {
            struct speed_iteration *iteration = placed_iteration(speed->rank[r], n);
            if (iteration)
                iteration->length = fmaxf(median, iteration->share[SHARE_WAIT]);
        }
    }
    if (!length)
        return -1;
    free(length);
    speed->levelled = closed;
    return 0;
}
