/* hosts.c: hosts that make the others wait now by one of their ranks, now by another.
 *
 * Each of the ranks is late rarely, and none in most iterations, so none is found by itself. But in
 * most iterations one of them has nothing to do but wait for its host. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/reason.h"

enum {
    HOST_PERCENT = 8,       /* of an iteration: it is late */
    HOST_LATE_PERCENT = 25, /* of the iterations */
    HOST_TIMES = 3,         /* as much as most other hosts lose in that way */
    HOST_OTHERS_PERCENT = 75,
    HOST_RANK_TIMES = 2,    /* as idle as most ranks is a rank that takes part, */
    HOST_RANK_PERCENT = 10, /* and so much as the one that is most so */
    HOSTS_LEAST = 2
};
/* The probability that chance alone makes one host late that much more often than the others. */
static const double chance_most = 0.01;

/* Ranks of one host, or, where hosts are not known, of a communicator. */
struct unit {
    const char *host;
    const struct comm *comm;
    double most, lost; /* seconds: of the current iteration, and of all on average */
    uint64_t late;     /* iterations */
    uint32_t ranks;
};

struct units {
    struct unit *unit;
    uint32_t count;
    uint32_t *of;  /* by rank; UINT32_MAX none */
    double *idle;  /* by rank: beyond the lower quarter of all ranks, on average */
    double *value; /* as many as ranks */
};

static int units_begin(const struct judged *judged, struct units *units)
{
    uint32_t count = judged->speed->count;
    units->unit = calloc(count + 1, sizeof *units->unit);
    units->of = malloc((count + 1) * sizeof *units->of);
    units->idle = calloc(count + 1, sizeof *units->idle);
    units->value = malloc((count + 1) * sizeof *units->value);
    return units->unit && units->of && units->idle && units->value ? 0 : -1;
}

static void units_free(struct units *units)
{
    free(units->unit);
    free(units->of);
    free(units->idle);
    free(units->value);
}

/* The smallest communicator with collectives that a rank is in; NULL none. */
static const struct comm *narrowest_of(const struct judged *judged, const struct speed_rank *rank)
{
    const struct comm *found = NULL;
    for (const struct speed_comm *comm = judged->speed->comms; comm; comm = comm->hh.next) {
        bool is_smaller = comm->collectives && comm->comm->members > 1 &&
                          (!found || comm->comm->members < found->members);
        for (uint32_t i = 0; is_smaller && i < comm->comm->members; i++)
            if (speed_rank_of(judged->speed, comm->comm->member[i]) == rank)
                found = comm->comm;
    }
    return found;
}

static void find_units(const struct judged *judged, struct units *units)
{
    for (uint32_t r = 0; r < judged->speed->count; r++) {
        const struct speed_rank *rank = judged->speed->rank[r];
        struct unit own = {.host = rank->key.process->info.host};
        uint32_t u = r && !*own.host && units->of[r - 1] != UINT32_MAX ? units->of[r - 1] : 0;
        if (!*own.host)
            own.comm = narrowest_of(judged, rank);
        while (u < units->count &&
               (units->unit[u].comm != own.comm || strcmp(units->unit[u].host, own.host) != 0))
            u++;
        if (u == units->count)
            units->unit[units->count++] = own;
        units->of[r] = u;
        units->unit[u].ranks++;
    }
}

/* How long each rank has nothing to do, and of each unit the rank for which that is longest. */
static void add_iteration(const struct judged *judged, uint64_t number, struct units *units)
{
    uint32_t count = judged->speed->count;
    double iterations = (double)(judged->end - judged->first);
    struct speed_iteration iteration;
    for (uint32_t r = 0; r < count; r++) {
        judged_iteration(judged->speed->rank[r], number, &iteration);
        units->value[r] = speed_idle_surely(&iteration);
    }
    speed_median(units->value, count);
    double usual = units->value[count / 4];
    for (uint32_t r = 0; r < count; r++) {
        judged_iteration(judged->speed->rank[r], number, &iteration);
        double idle = speed_idle_surely(&iteration) - usual;
        struct unit *unit = &units->unit[units->of[r]];
        units->idle[r] += idle / iterations;
        unit->most = fmax(unit->most, idle);
    }
    for (uint32_t u = 0; u < units->count; u++) {
        struct unit *unit = &units->unit[u];
        unit->late += 100 * unit->most > HOST_PERCENT * judged->length;
        unit->lost += unit->most / iterations;
        unit->most = 0;
    }
}

/* What most of the ranks, or units, have at most; of a few the others. */
static double usual_of(double *value, uint32_t count)
{
    uint32_t place = count * HOST_OTHERS_PERCENT / 100;
    speed_median(value, count);
    return count > 1 ? value[place > count - 2 ? count - 2 : place] : 0;
}

/* How probable it is that chance, which makes all ranks late alike, makes one of the units late so
 * much more often than the others. */
static double chance_of(const struct judged *judged, const struct units *units,
                        const struct unit *unit)
{
    uint64_t late = 0;
    for (uint32_t u = 0; u < units->count; u++)
        late += units->unit[u].late;
    double share = (double)unit->ranks / (double)judged->speed->count;
    return units->count * speed_chance(late, unit->late, share);
}

static bool is_late(const struct judged *judged, const struct units *units, const struct unit *unit,
                    double usual)
{
    uint64_t iterations = judged->end - judged->first;
    return unit->ranks > 1 && chance_of(judged, units, unit) <= chance_most &&
           100 * unit->late >= HOST_LATE_PERCENT * iterations &&
           100 * unit->lost >= HOST_PERCENT * judged->length && unit->lost >= HOST_TIMES * usual;
}

/* Those of its ranks that take part in it, unless most of them are found already. */
static void add_unit(const struct judged *judged, const struct units *units, uint32_t u,
                     double usual, struct slowdowns *found)
{
    const struct speed_rank **rank = malloc((units->unit[u].ranks + 1) * sizeof *rank);
    uint32_t ranks = 0, known = 0;
    double most = 0;
    found->failed |= !rank;
    for (uint32_t r = 0; r < judged->speed->count; r++)
        if (units->of[r] == u)
            most = fmax(most, units->idle[r]);
    for (uint32_t r = 0; rank && r < judged->speed->count; r++) {
        if (units->of[r] != u || units->idle[r] < HOST_RANK_TIMES * usual ||
            100 * units->idle[r] < HOST_RANK_PERCENT * most)
            continue;
        known += slowdowns_have_rank(found, judged->speed->rank[r]);
        rank[ranks++] = judged->speed->rank[r];
    }
    if (ranks > 1 && 2 * known <= ranks) {
        struct slowdown slowdown =
            slowdown_of_rank(judged, rank[0]->index, rank, units->unit[u].lost);
        slowdown.ranks = ranks;
        slowdown.kind = SLOW_HOST;
        slowdown.often = (double)units->unit[u].late / (double)(judged->end - judged->first);
        slowdowns_add(found, &slowdown);
    }
    free(rank);
}

void judge_hosts(struct judged *judged, struct slowdowns *found)
{
    struct units units = {0};
    if (!judged_shows_host(judged))
        return;
    if (units_begin(judged, &units)) {
        found->failed = true;
        units_free(&units);
        return;
    }
    find_units(judged, &units);
    for (uint64_t n = judged->first; units.count >= HOSTS_LEAST && n < judged->end; n++)
        add_iteration(judged, n, &units);
    for (uint32_t u = 0; u < units.count; u++)
        units.value[u] = units.unit[u].lost;
    double usual = usual_of(units.value, units.count);
    for (uint32_t r = 0; r < judged->speed->count; r++)
        units.value[r] = units.idle[r];
    double idle = fmax(speed_median(units.value, judged->speed->count), 0);
    for (uint32_t u = 0; u < units.count; u++)
        if (units.count >= HOSTS_LEAST && is_late(judged, &units, &units.unit[u], usual))
            add_unit(judged, &units, u, idle, found);
    units_free(&units);
}
