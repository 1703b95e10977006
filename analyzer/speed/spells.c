/* spells.c: ranks that make the others wait in some iterations only, and in these again and again.
 *
 * Chance makes now one rank late, now another. A rank that is late in many more iterations than
 * nearly all others has a cause of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/reason.h"

enum {
    SPELL_PERCENT = 8,       /* of an iteration, or six times the usual deviation: it is late */
    SPELLS_LEAST = 8,        /* iterations in which it is late */
    SPELL_SHARE_PERCENT = 5, /* of all iterations' time is lost to it */
    SINGLED_TIMES = 3,       /* as much as most other ranks lose in that way */
    OTHERS_PERCENT = 75,     /* these */
    UNBROKEN_PERCENT = 90,   /* of the iterations from the first such to the last: a phase */
    WAITING_PERCENT = 25     /* of what it loses the others wait */
};

/* The iterations in which a rank is late. */
struct spells {
    double lost; /* seconds, of an iteration on average */
    uint64_t count, first, last;
};

/* Beyond its usual excess: that is reported otherwise, or is none. */
static struct spells spells_of(const struct judged *judged, uint32_t rank, double *value)
{
    const double *excess = judged_excess(judged, rank);
    uint64_t iterations = judged->end - judged->first;
    struct spells spells = {0};
    memcpy(value, excess, iterations * sizeof *value);
    speed_median(value, iterations);
    double usual = fmax(value[iterations / 4], 0);
    for (uint64_t n = 0; n < iterations; n++)
        value[n] = fabs(excess[n] - usual);
    speed_median(value, iterations);
    double limit = fmax(6 * value[iterations / 4], SPELL_PERCENT * judged->length / 100);
    for (uint64_t n = 0; n < iterations; n++) {
        if (excess[n] - usual <= limit)
            continue;
        spells.first = spells.count ? spells.first : judged->first + n;
        spells.last = judged->first + n;
        spells.lost += (excess[n] - usual) / (double)iterations;
        spells.count++;
    }
    return spells;
}

/* What most ranks lose at most; of two or three ranks the others. */
static double usual_loss(const struct spells *spells, uint32_t ranks, double *value)
{
    for (uint32_t r = 0; r < ranks; r++)
        value[r] = spells[r].lost;
    speed_median(value, ranks);
    uint32_t place = ranks * OTHERS_PERCENT / 100;
    return value[ranks > 1 && place > ranks - 2 ? ranks - 2 : place];
}

static bool is_singled_out(const struct judged *judged, uint32_t rank, const struct spells *spells,
                           double usual)
{
    return judged->among[rank] && !judged->idles[rank] && spells->count >= SPELLS_LEAST &&
           100 * spells->lost >= SPELL_SHARE_PERCENT * judged->length &&
           spells->lost >= SINGLED_TIMES * usual &&
           judged->behind[rank] <= spells->lost / SINGLED_TIMES &&
           100 * judged->waited[rank] >= WAITING_PERCENT * spells->lost;
}

static void add_spells(struct judged *judged, uint32_t r, const struct spells *spells,
                       uint32_t from, struct slowdowns *found)
{
    const struct speed_rank *rank = judged->speed->rank[r];
    struct slowdown slowdown = slowdown_of_rank(judged, r, &rank, spells->lost);
    uint64_t iterations = judged->end - judged->first, length = spells->last + 1 - spells->first;
    bool is_unbroken = 100 * spells->count >= UNBROKEN_PERCENT * length;
    judged->is_seldom = true;
    slowdown.kind = slowdown_find_reason(judged, r, &slowdown);
    judged->is_seldom = false;
    slowdown.often = (double)spells->count / (double)iterations;
    if (is_unbroken && spells->first > judged->first + ITERATIONS_NEEDED)
        slowdown.since = spells->first;
    if (is_unbroken && spells->last + ITERATIONS_NEEDED < judged->end)
        slowdown.until = spells->last + 1;
    if (slowdown.kind != SLOW_KINDS)
        slowdowns_add_rank(judged, found, from, &slowdown);
}

void judge_spells(struct judged *judged, struct slowdowns *found)
{
    uint32_t ranks = judged->speed->count, from = found->count;
    uint64_t iterations = judged->end - judged->first;
    struct spells *spells = calloc(ranks + 1, sizeof *spells);
    double *value = malloc((iterations + ranks + 1) * sizeof *value);
    if (!spells || !value || ranks < 2) {
        found->failed |= !spells || !value;
        free(spells);
        free(value);
        return;
    }
    for (uint32_t r = 0; r < ranks; r++)
        spells[r] = spells_of(judged, r, value);
    double usual = usual_loss(spells, ranks, value);
    for (uint32_t r = 0; r < ranks; r++)
        if (is_singled_out(judged, r, &spells[r], usual) &&
            !slowdowns_have_rank(found, judged->speed->rank[r]))
            add_spells(judged, r, &spells[r], from, found);
    free(spells);
    free(value);
}
