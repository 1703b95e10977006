/* turns.c: hosts, or ranks, that make the others wait in some iterations only.
 *
 * Chance makes now one late, now another: each iteration in which some of them cost anything is a
 * draw, by the number of ranks. One that costs most in more of them than chance brings has a cause
 * of its own. What it costs is the replay's answer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/questions.h"
#include "analyzer/speed/reason.h"

enum {
    TURN_CANDIDATES = 16, /* those that lose most: each is replayed in each iteration */
    TURNS_LEAST = 8       /* iterations in which it costs most */
};
/* The probability that chance alone makes one of all late that often. */
static const double chance_most = 0.01;

/* Ranks of one host; where the hosts are not known, or there is one, a rank. */
struct unit {
    uint32_t number, first, ranks, wins; /* number: in turns->of */
    double loss;                         /* seconds, of all iterations */
};

struct turns {
    struct unit *unit;
    uint32_t *of, count, late; /* of: by rank; late: iterations in which some cost anything */
    const struct speed_rank **rank;
};

static const char *host_of_rank(const struct judged *judged, uint32_t rank)
{
    return judged->speed->rank[rank]->key.process->info.host;
}

static void find_units(const struct judged *judged, bool by_host, struct turns *turns)
{
    turns->count = 0;
    for (uint32_t r = 0; r < judged->speed->count; r++) {
        uint32_t u = by_host ? 0 : turns->count;
        while (u < turns->count &&
               strcmp(host_of_rank(judged, turns->unit[u].first), host_of_rank(judged, r)) != 0)
            u++;
        if (u == turns->count)
            turns->unit[turns->count++] = (struct unit){.number = u, .first = r};
        turns->of[r] = u;
        turns->unit[u].ranks++;
        for (uint64_t n = 0; n < judged->end - judged->first; n++)
            turns->unit[u].loss += fmax(judged_excess(judged, r)[n], 0);
    }
}

static struct slowdown slowdown_of_unit(const struct judged *judged, const struct turns *turns,
                                        uint32_t unit)
{
    uint32_t ranks = 0;
    for (uint32_t r = 0; r < judged->speed->count; r++)
        if (turns->of[r] == turns->unit[unit].number)
            turns->rank[ranks++] = judged->speed->rank[r];
    struct slowdown slowdown =
        slowdown_of_rank(judged, turns->unit[unit].first, turns->rank,
                         turns->unit[unit].loss / (double)(judged->end - judged->first));
    slowdown.ranks = ranks;
    slowdown.kind = SLOW_HOST;
    return slowdown;
}

static int more_loss_first(const void *a, const void *b)
{
    const struct unit *left = a, *right = b;
    return (left->loss < right->loss) - (left->loss > right->loss);
}

/* No replay gains what no rank of it loses. */
static bool may_cost(const struct judged *judged, const struct turns *turns, uint32_t unit,
                     const struct scene *scene, double least)
{
    if (scene->iteration < judged->first)
        return false;
    for (uint32_t r = 0; r < judged->speed->count; r++)
        if (turns->of[r] == turns->unit[unit].number &&
            judged_excess(judged, r)[scene->iteration - judged->first] >= least)
            return true;
    return false;
}

/* Which of the units costs most in each iteration. */
static void count_wins(struct whatif *whatif, struct turns *turns)
{
    uint32_t asked = turns->count < TURN_CANDIDATES ? turns->count : TURN_CANDIDATES;
    for (uint32_t i = 0; i < whatif->scenes; i++) {
        const struct scene *scene = &whatif->scene[i];
        double most = SHARE_PERCENT * scene->length / 100;
        uint32_t best = UINT32_MAX;
        for (uint32_t u = 0; u < asked; u++) {
            if (!may_cost(whatif->judged, turns, u, scene, most))
                continue;
            struct slowdown slowdown = slowdown_of_unit(whatif->judged, turns, u);
            double gain = whatif_ask(whatif, scene, &slowdown);
            best = gain > most ? u : best;
            most = fmax(most, gain);
        }
        turns->late += best != UINT32_MAX;
        if (best != UINT32_MAX)
            turns->unit[best].wins++;
    }
}

static void add_unit(struct whatif *whatif, const struct turns *turns, uint32_t unit,
                     struct slowdowns *found)
{
    struct judged *judged = whatif->judged;
    struct slowdown slowdown = slowdown_of_unit(judged, turns, unit);
    for (uint32_t i = 0; i < slowdown.ranks; i++)
        if (!judged->among[slowdown.rank[i]->index] || slowdowns_have_rank(found, slowdown.rank[i]))
            return;
    slowdown.often = (double)turns->unit[unit].wins / whatif->scenes;
    judged->is_seldom = true;
    slowdown.kind = slowdown_find_reason(judged, turns->unit[unit].first, &slowdown);
    judged->is_seldom = false;
    if (slowdown.kind != SLOW_KINDS)
        slowdowns_add(found, &slowdown);
}

static void judge_units(struct whatif *whatif, bool by_host, struct turns *turns,
                        struct slowdowns *found)
{
    struct judged *judged = whatif->judged;
    find_units(judged, by_host, turns);
    if (turns->count < 2)
        return;
    qsort(turns->unit, turns->count, sizeof *turns->unit, more_loss_first);
    turns->late = 0;
    count_wins(whatif, turns);
    for (uint32_t u = 0; u < turns->count; u++) {
        const struct unit *unit = &turns->unit[u];
        double share = (double)unit->ranks / judged->speed->count;
        if (unit->wins >= TURNS_LEAST &&
            turns->count * speed_chance(turns->late, unit->wins, share) <= chance_most)
            add_unit(whatif, turns, u, found);
    }
}

void judge_turns(struct whatif *whatif, struct slowdowns *found)
{
    uint32_t ranks = whatif->judged->speed->count;
    struct turns turns = {.unit = calloc(ranks + 1, sizeof *turns.unit),
                          .of = calloc(ranks + 1, sizeof *turns.of),
                          .rank = calloc(ranks + 1, sizeof *turns.rank)};
    found->failed |= !turns.unit || !turns.of || !turns.rank;
    if (!found->failed && !whatif->judged->recorded) {
        judge_units(whatif, true, &turns, found);
        judge_units(whatif, false, &turns, found);
    }
    free(turns.unit);
    free(turns.of);
    free(turns.rank);
}
