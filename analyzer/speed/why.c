/* why.c: which ranks make their peers wait, and why: a late host, a slow device or more work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/reason.h"

enum {
    WAITED_PERCENT = 25, /* of what it exceeds them by: else they do not wait, it is hidden */
    BEHIND_PERCENT =
        40,      /* of that, another member may exceed them more, unless its kernels show it */
    GROUPS = 24, /* of iterations, where the program names none */
    SAME_FAULT_PERCENT = 50, /* ranks of one host that lose that much alike are one finding */
    SAME_HOST_PERCENT =
        30,              /* of what such a rank loses, where the ranks of a host hide each other */
    UNSEEN_PERCENT = 5,  /* what counts of an iteration where kernels are not recorded, and peers */
    UNSEEN_PEERS = 8,    /* are fewer than these, which show what chance does */
    SPREAD_TIMES = 4,    /* the median distance of peers from their median: chance */
    STEADY_PERCENT = 90, /* of the iterations: chance makes now one rank late, now another */
    SPREAD_PEERS = 4,    /* how many peers there have to be for it */
    COUNTED_PERCENT = 125 /* of its peers' threads in kernels */
};

static const double resolution_s = 1e-6; /* of many sources' times */

/* What it takes to be reported: with exact times, and with coarse ones. */
static const struct demand {
    uint32_t often_percent; /* of the iterations, in which the rank is behind its peers */
    uint32_t share_percent, iterations;
    double seconds; /* lost in an iteration */
    /* Of iterations in all: a busy host's scheduler makes the same rank late for tenths of it. */
    double evidence_seconds;
} demands[] = {{70, SHARE_PERCENT, ITERATIONS_NEEDED, 0, 0}, {90, 10, 30, 0.002, 0.5}};

/* Where the program names no iterations, what was taken for one is a part of one: several of them
 * are compared at once. */
static uint64_t group_size(const struct judged *judged)
{
    uint64_t iterations = judged->end - judged->first;
    return judged->named || iterations < 2 * GROUPS ? 1 : iterations / GROUPS;
}

/* The excess in an iteration of each group; returns how many there are. The caller frees. */
static uint64_t group_excess(const struct judged *judged, uint32_t rank, double **grouped)
{
    uint64_t size = group_size(judged), count = (judged->end - judged->first) / size;
    const double *excess = judged_excess(judged, rank);
    *grouped = calloc(count + 1, sizeof **grouped);
    for (uint64_t n = 0; *grouped && n < count * size; n++)
        (*grouped)[n / size] += excess[n] / (double)size;
    return *grouped ? count : 0;
}

/* What each rank loses, and what of that chance may be. */
struct rank_losses {
    double *lost;     /* by rank: the median excess of an iteration */
    double *chance;   /* by rank: less is within the spread of its peers; 0: these are too few */
    double *usual;    /* by rank: what its peers lose as well, each in its turn */
    bool *often;      /* by rank: it is behind in nearly all iterations, */
    bool *is_counted; /* or in fewer, but it has more work: by rank */
    bool *is_steady;  /* by rank: and by much */
    bool *is_behind;  /* by rank */
};

static void losses_free(struct rank_losses *losses)
{
    free(losses->lost);
    free(losses->chance);
    free(losses->usual);
    free(losses->often);
    free(losses->is_counted);
    free(losses->is_steady);
    free(losses->is_behind);
}

static void weigh_rank(const struct judged *judged, uint32_t rank, struct rank_losses *losses)
{
    const struct demand *demand = &demands[judged->coarse];
    double *grouped;
    uint64_t count = group_excess(judged, rank, &grouped), often = 0, steady = 0;
    for (uint64_t n = 0; n < count; n++) {
        often += 100 * grouped[n] > judged->length;
        steady += 100 * grouped[n] > demands[1].share_percent * judged->length;
    }
    losses->often[rank] = count && 100 * often >= demand->often_percent * count;
    losses->is_counted[rank] &= count && !losses->often[rank] &&
                                100 * often >= demands[0].often_percent * count;
    losses->often[rank] |= losses->is_counted[rank];
    losses->is_steady[rank] = count && 100 * steady >= STEADY_PERCENT * count;
    losses->lost[rank] = losses->often[rank] ? speed_middle(grouped, count)
                                             : speed_median(grouped, count);
    free(grouped);
}

/* Threads of an iteration's kernels, where these are not timed. */
static double mean_threads(const struct judged *judged, uint32_t rank)
{
    struct speed_iteration iteration;
    double sum = 0;
    for (uint64_t n = judged->first; n < judged->end; n++)
        if (judged_iteration(judged->speed->rank[rank], n, &iteration))
            sum += iteration.threads;
    return sum / (double)(judged->end - judged->first);
}

/* Finds ranks whose kernels have many more threads than those of most peers, which no busy host
 * causes. 0 or -1 (ENOMEM). */
static int find_counted(const struct judged *judged, struct rank_losses *losses, double *value)
{
    double *threads = malloc((judged->speed->count + 1) * sizeof *threads), usual = 0;
    const struct comm *last = NULL;
    for (uint32_t r = 0; threads && r < judged->speed->count; r++)
        threads[r] = mean_threads(judged, r);
    for (uint32_t r = 0; threads && r < judged->speed->count; r++) {
        const struct comm *comm = judged->among[r];
        uint32_t count = 0;
        for (uint32_t i = 0; comm && comm != last && i < comm->members; i++) {
            const struct speed_rank *rank = speed_rank_of(judged->speed, comm->member[i]);
            if (rank && count < judged->speed->count)
                value[count++] = threads[rank->index];
        }
        usual = comm && comm != last ? speed_median(value, count) : usual;
        last = comm ? comm : last;
        losses->is_counted[r] = comm && usual > 0 && 100 * threads[r] >= COUNTED_PERCENT * usual;
    }
    free(threads);
    return threads ? 0 : -1;
}

/* The distance of most members from their median, which is *usual, several times. */
static double spread_of(const struct judged *judged, const struct comm *comm,
                        const struct rank_losses *losses, double *value, double *usual)
{
    size_t count = 0;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct speed_rank *rank = speed_rank_of(judged->speed, comm->member[i]);
        if (rank)
            value[count++] = losses->lost[rank->index];
    }
    double median = speed_median(value, count);
    *usual = fmax(median, 0);
    for (size_t i = 0; i < count; i++)
        value[i] = fabs(value[i] - median);
    if (count < SPREAD_PEERS)
        return 0;
    return SPREAD_TIMES * fmax(speed_median(value, count), resolution_s);
}

/* Neither another member nor a rank of its pipeline is behind much more; or what is longer is shown
 * to be its own: by its kernels, or, if it loses half of what the worst does, by what it has in the
 * queue. */
static bool is_own_loss(const struct judged *judged, uint32_t rank, double lost)
{
    bool is_near = judged->speed->rank[rank]->kernels || judged->behind[rank] <= lost;
    return 100 * judged->behind[rank] <= BEHIND_PERCENT * lost ||
           (is_near && slowdown_computes_longer(judged, rank, lost));
}

/* What its peers do not lose as well; of a pipeline all of whose stages lose, that of all. */
static double lost_together(const struct judged *judged, uint32_t rank, double own)
{
    const struct speed_pipeline *pipeline = judged_pipeline(judged, rank);
    return judged->coarse ? own : fmax(own, pipeline->least * pipeline->ranks);
}

static bool is_behind(const struct judged *judged, uint32_t rank, const struct rank_losses *losses)
{
    const struct demand *demand = &demands[judged->coarse];
    double lost = losses->lost[rank], own = lost - losses->usual[rank];
    double iterations = (double)(judged->end - judged->first);
    bool is_unseen = !judged->speed->rank[rank]->kernels &&
                     (!judged->among[rank] || judged->among[rank]->members < UNSEEN_PEERS);
    if (is_unseen && 100 * own < UNSEEN_PERCENT * judged->length)
        return false;
    return judged->among[rank] && losses->often[rank] && iterations >= demand->iterations &&
           iterations * judged->length >= demand->evidence_seconds && own >= demand->seconds &&
           100 * lost_together(judged, rank, own) >= demand->share_percent * judged->length &&
           lost >= losses->chance[rank] && 100 * judged->waited[rank] >= WAITED_PERCENT * lost &&
           is_own_loss(judged, rank, lost);
}

/* It loses much of nearly each iteration, beyond what its peers lose as well. */
static bool is_steady(const struct judged *judged, uint32_t rank, const struct rank_losses *losses)
{
    const struct demand *demand = &demands[1];
    double iterations = (double)(judged->end - judged->first),
           own = losses->lost[rank] - losses->usual[rank];
    return losses->is_steady[rank] && iterations >= demand->iterations &&
           iterations * judged->length >= demand->evidence_seconds && own >= demand->seconds &&
           100 * own >= demand->share_percent * judged->length;
}

/* 0 or -1 (ENOMEM). */
static int find_losses(const struct judged *judged, struct rank_losses *losses)
{
    uint32_t count = judged->speed->count;
    double *value = malloc((count + 1) * sizeof *value);
    const struct comm *last = NULL;
    double spread = 0, usual = 0;
    *losses =
        (struct rank_losses){calloc(count + 1, sizeof(double)), calloc(count + 1, sizeof(double)),
                             calloc(count + 1, sizeof(double)), calloc(count + 1, sizeof(bool)),
                             calloc(count + 1, sizeof(bool)),   calloc(count + 1, sizeof(bool)),
                             calloc(count + 1, sizeof(bool))};
    bool has_room = value && losses->lost && losses->chance && losses->usual && losses->often &&
                    losses->is_counted && losses->is_steady && losses->is_behind;
    if (has_room && judged->coarse)
        has_room = !find_counted(judged, losses, value);
    for (uint32_t r = 0; has_room && r < count; r++)
        weigh_rank(judged, r, losses);
    for (uint32_t r = 0; has_room && r < count; r++) {
        const struct comm *comm = judged->idles[r] ? NULL : judged->among[r];
        if (comm && comm != last && comm->members <= count)
            spread = spread_of(judged, comm, losses, value, &usual);
        losses->chance[r] = comm ? spread : 0;
        losses->usual[r] = comm ? usual : 0;
        last = comm ? comm : last;
        losses->is_behind[r] = is_behind(judged, r, losses);
    }
    free(value);
    return has_room ? 0 : -1;
}

static bool is_one_host(const struct comm *comm)
{
    for (uint32_t i = 1; i < comm->members; i++)
        if (strcmp(comm->member[i]->process->info.host, comm->member[0]->process->info.host) != 0)
            return false;
    return true;
}

/* A rank of the same host is: what happens to the host makes one late here, another there. */
static bool is_behind_with_host(const struct judged *judged, uint32_t rank,
                                const struct rank_losses *losses)
{
    const char *host = judged->speed->rank[rank]->key.process->info.host;
    double lost = losses->lost[rank];
    if (!*host || !judged->among[rank] || judged->coarse || is_one_host(judged->among[rank]) ||
        100 * lost < demands[0].share_percent * judged->length)
        return false;
    for (uint32_t r = 0; r < judged->speed->count; r++)
        if (losses->is_behind[r] && judged->among[r] == judged->among[rank] &&
            100 * lost >= SAME_HOST_PERCENT * losses->lost[r] &&
            !strcmp(judged->speed->rank[r]->key.process->info.host, host))
            return true;
    return false;
}

static bool is_most_of_host_behind(const struct judged *judged, uint32_t rank,
                                   const struct rank_losses *losses)
{
    const char *host = judged->speed->rank[rank]->key.process->info.host;
    uint32_t ranks = 0, behind = 0;
    for (uint32_t r = 0; r < judged->speed->count; r++) {
        if (strcmp(judged->speed->rank[r]->key.process->info.host, host) != 0)
            continue;
        ranks++;
        behind += losses->is_behind[r];
    }
    return 2 * behind > ranks;
}

/* What is slow on both: a host; or the replica that is a pipeline, with more work, because it has
 * the larger batch, and where its stages lose much only together. */
static bool may_share_cause(const struct judged *judged, const struct slowdown *slowdown,
                            const struct speed_rank *other)
{
    const struct speed_rank *rank = slowdown->rank[0];
    const struct speed_pipeline *pipeline = judged_pipeline(judged, rank->index);
    const char *host = rank->key.process->info.host;
    if (pipeline->ranks > 1 && (slowdown->kind == SLOW_WORK || slowdown->gain.is_together))
        return judged_pipeline(judged, other->index) == pipeline;
    return !slowdown->is_apart && *host && !strcmp(other->key.process->info.host, host);
}

/* Ranks that lose alike for the same reason are one slowdown. */
static struct slowdown *find_same_cause(const struct judged *judged, const struct slowdowns *found,
                                        uint32_t from, const struct slowdown *slowdown)
{
    for (uint32_t i = from; i < found->count; i++) {
        struct slowdown *other = &found->slowdown[i];
        double less = fmin(other->lost, slowdown->lost), most = fmax(other->lost, slowdown->lost);
        bool is_alike = 100 * less >= SAME_FAULT_PERCENT * most ||
                        (slowdown->kind == SLOW_HOST && 100 * less >= SAME_HOST_PERCENT * most);
        if (other->kind == slowdown->kind &&
            other->gain.is_together == slowdown->gain.is_together && is_alike &&
            may_share_cause(judged, slowdown, other->rank[0]))
            return other;
    }
    return NULL;
}

static void add_to_same(struct slowdowns *found, struct slowdown *same,
                        const struct slowdown *slowdown)
{
    const struct speed_rank **grown = realloc(same->rank, (same->ranks + 1) * sizeof *same->rank);
    if (!grown) {
        found->failed = true;
        return;
    }
    same->rank = grown;
    same->rank[same->ranks++] = slowdown->rank[0];
    if (same->lost < slowdown->lost)
        same->lost = slowdown->lost;
}

void slowdowns_add_rank(const struct judged *judged, struct slowdowns *found, uint32_t from,
                        const struct slowdown *slowdown)
{
    struct slowdown *same = find_same_cause(judged, found, from, slowdown);
    if (same)
        add_to_same(found, same, slowdown);
    else
        slowdowns_add(found, slowdown);
}

struct slowdown slowdown_of_rank(const struct judged *judged, uint32_t index,
                                 const struct speed_rank *const *rank, double lost)
{
    return (struct slowdown){.rank = (const struct speed_rank **)rank,
                             .ranks = 1,
                             .lost = lost,
                             .length = judged->length,
                             .comm = judged->among[index],
                             .until = judged->until,
                             .first = judged->first,
                             .last = judged->end - 1,
                             .is_coarse = judged->coarse};
}

static void judge_one(struct judged *judged, uint32_t r, const struct rank_losses *losses,
                      uint32_t from, struct slowdowns *found)
{
    const struct speed_rank *rank = judged->speed->rank[r];
    struct slowdown slowdown = slowdown_of_rank(judged, r, &rank, losses->lost[r]);
    slowdown.kind = judged->idles[r] ? SLOW_HOST : slowdown_find_reason(judged, r, &slowdown);
    slowdown.is_idle = slowdown.kind == SLOW_HOST && !slowdown.kind_is_guess;
    slowdown.is_apart = slowdown.kind_is_guess && !is_most_of_host_behind(judged, r, losses);
    slowdown.gain.is_together = 100 * slowdown.lost < SHARE_PERCENT * judged->length;
    if (slowdown.gain.is_together)
        slowdown.lost = lost_together(judged, r, slowdown.lost);
    slowdown.is_steady = is_steady(judged, r, losses);
    slowdown.before = judged->before ? judged->before[r] : 0;
    if (2 * slowdown.before < slowdown.lost)
        slowdown.since = judged->since;
    bool is_reason = losses->is_counted[r] ? slowdown.kind == SLOW_WORK
                                           : slowdown.kind != SLOW_KINDS;
    if (!is_reason || (!losses->is_behind[r] && slowdown.kind != SLOW_HOST))
        return;
    slowdowns_add_rank(judged, found, from, &slowdown);
}

void judge_ranks(struct judged *judged, struct slowdowns *found)
{
    uint32_t from = found->count;
    struct rank_losses losses;
    if (find_losses(judged, &losses))
        found->failed = true;
    for (uint32_t r = 0; r < judged->speed->count; r++)
        if (losses.is_behind[r] || is_behind_with_host(judged, r, &losses))
            judge_one(judged, r, &losses, from, found);
    judge_starving(judged, found, from);
    losses_free(&losses);
}
