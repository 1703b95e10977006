/* diff_speed.c: see diff_speed.h. A difference counts if the middle halves of both traces' values
 * do not overlap, and it is more than a few percent of an iteration. */
#include "cmd/diff/diff_speed.h"

#include <math.h>
#include <stdlib.h>

#include "lib/base/array.h"

enum {
    ITERATION_PERCENT = 5, /* of the longer iteration */
    SHARE_PERCENT = 3,     /* of the longer iteration, for lags and transfers */
    ALIKE_PERCENT = 5      /* of an iteration: ranks that differ alike are one difference */
};

static const struct speed_spread_view *find_spread(const struct diff_pace *pace,
                                                   enum spread_of what, int rank, uint64_t comm)
{
    for (int i = 0; i < pace->count; i++) {
        const struct speed_spread_view *spread = &pace->spread[i];
        if (spread->what == what && spread->shown_rank == rank && spread->comm == comm)
            return spread;
    }
    return NULL;
}

static bool differs_beyond_noise(const struct speed_spread_view *a,
                                 const struct speed_spread_view *b, double iteration_s)
{
    int percent = a->what == SPREAD_ITERATION ? ITERATION_PERCENT : SHARE_PERCENT;
    bool overlap = a->low_s <= b->high_s && b->low_s <= a->high_s;
    return !overlap && 100 * fabs(a->median_s - b->median_s) >= percent * iteration_s;
}

static struct speed_difference *alike_difference(const struct diff_speed *speed,
                                                 const struct speed_difference *of, double length)
{
    for (int i = 0; i < speed->differences && !of->comm[0]; i++) {
        struct speed_difference *difference = &speed->difference[i];
        double most = ALIKE_PERCENT * length / 100;
        if (difference->what == of->what && fabs(difference->value_s[0] - of->value_s[0]) <= most &&
            fabs(difference->value_s[1] - of->value_s[1]) <= most)
            return difference;
    }
    return NULL;
}

/* Adds it to those of ranks that differ alike. NULL when memory is short. */
static struct speed_difference *add_speed_difference(struct diff_speed *speed,
                                                     const struct speed_difference *of)
{
    double length = fmax(of->iteration_s[0], of->iteration_s[1]);
    struct speed_difference *alike = alike_difference(speed, of, length);
    if (alike)
        return alike;
    if (!ARRAY_ADD(speed->difference, speed->differences))
        return NULL;
    speed->difference[speed->differences] = *of;
    return &speed->difference[speed->differences++];
}

static int compare_spreads(struct diff_speed *speed, struct diff_side *const side[2],
                           const struct speed_spread_view *a, const struct speed_spread_view *b,
                           struct speed_difference **added)
{
    const struct diff_pace *pace[2] = {&side[0]->pace, &side[1]->pace};
    *added = NULL;
    if (!b || !differs_beyond_noise(a, b, fmax(pace[0]->iteration_s, pace[1]->iteration_s)))
        return 0;
    const struct speed_difference difference = {
        .what = a->what,
        .comm = {a->comm, b->comm},
        .value_s = {a->median_s, b->median_s},
        .iteration_s = {pace[0]->iteration_s, pace[1]->iteration_s}};
    *added = add_speed_difference(speed, &difference);
    return *added ? 0 : -1;
}

static int compare_rank_spreads(struct diff_speed *speed, struct diff_side *const side[2], int rank,
                                int with)
{
    struct speed_difference *added;
    for (int i = 0; i < side[0]->pace.count; i++) {
        const struct speed_spread_view *a = &side[0]->pace.spread[i];
        if (a->comm || a->shown_rank < 0 || (rank >= 0 && a->shown_rank != rank))
            continue;
        int other = rank >= 0 ? with : a->shown_rank;
        const struct speed_spread_view *b = find_spread(&side[1]->pace, a->what, other, 0);
        if (compare_spreads(speed, side, a, b, &added) ||
            (added && rankset_add(&added->ranks, a->shown_rank)))
            return -1;
    }
    return 0;
}

static int compare_comm_spreads(struct diff_speed *speed, const struct diff_pairs *pairs,
                                struct diff_side *const side[2])
{
    struct speed_difference *added;
    for (int i = 0; i < pairs->pairs; i++) {
        const struct diff_comm *comm[2];
        const struct speed_spread_view *spread[2];
        for (int which = 0; which < 2; which++) {
            comm[which] = &side[which]->comm[pairs->pair[i].comm[which]];
            spread[which] = find_spread(&side[which]->pace, SPREAD_TRANSFER, -1, comm[which]->id);
        }
        if (spread[0] && compare_spreads(speed, side, spread[0], spread[1], &added))
            return -1;
        for (int m = 0; spread[0] && added && m < comm[0]->ranks; m++) {
            int member = comm[0]->member[m];
            int rank = member >= 0 ? side[0]->member[member].shown_rank : -1;
            if (rank >= 0 && rankset_add(&added->ranks, rank))
                return -1;
        }
    }
    return 0;
}

int diff_speed(struct diff_speed *speed, const struct diff_pairs *pairs,
               struct diff_side *const side[2], int rank, int with)
{
    *speed = (struct diff_speed){0};
    if (compare_rank_spreads(speed, side, rank, with))
        return -1;
    return rank >= 0 ? 0 : compare_comm_spreads(speed, pairs, side);
}

void diff_speed_free(struct diff_speed *speed)
{
    for (int i = 0; i < speed->differences; i++)
        rankset_free(&speed->difference[i].ranks);
    free(speed->difference);
    *speed = (struct diff_speed){0};
}
