/* pausing.c: pauses that come again and again, of ranks or of all. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/slowdown.h"

enum {
    PAUSES_LEAST = 4,
    PAUSE_PERCENT = 15,      /* of the median iteration, or six times the usual deviation */
    REGULAR_PERCENT = 80,    /* of the times at which one is due have one */
    MOSTLY_PERCENT = 60,     /* of what is lost in long iterations is lost in these */
    SAME_PAUSE_PERCENT = 50, /* of the longest rank's, which a rank that pauses loses */
    VARYING_LEAST = 5,       /* pauses, where their distances vary */
    NEAR_PERCENT = 35,       /* of the mean distance, which a distance near it differs by at most */
    SMALLER_PERCENT = 40     /* of a long pause: what is shorter is none */
};
/* As regular as chance makes long iterations, which come independently of each other, so rarely. */
static const double chance_most = 0.01;

/* Iterations that are longer than usual by far. */
struct pause_list {
    size_t at[ITERATIONS_KEPT];
    double each[ITERATIONS_KEPT]; /* seconds beyond the usual */
    size_t count, period;
    double extra;  /* of all of them */
    bool varies;   /* the period is a mean */
    double chance; /* how probable it is that chance makes them so regular */
};

/* Whether those at equal distances from `phase` on are most of all that is lost, and more than
 * chance brings there for any of the periods and phases; a pause may reach into the next iteration.
 * What is shorter than `least` seconds is no pause. */
static bool are_pauses(const struct pause_list *all, size_t count, double least, size_t period,
                       size_t phase, struct pause_list *pauses)
{
    double extra[ITERATIONS_KEPT + 1] = {0};
    size_t slots = 0, longer = 0;
    for (size_t i = 0; i < all->count; i++) {
        bool is_long = all->each[i] >= least;
        extra[all->at[i]] = is_long ? all->each[i] : 0;
        longer += is_long;
    }
    *pauses = (struct pause_list){.period = period};
    for (size_t i = phase; i < count; i += period, slots++) {
        if (!(extra[i] > 0))
            continue;
        pauses->extra += extra[i] + extra[i + 1];
        pauses->at[pauses->count++] = i;
    }
    if (pauses->count < PAUSES_LEAST || 100 * pauses->count < REGULAR_PERCENT * slots ||
        100 * pauses->extra < MOSTLY_PERCENT * all->extra)
        return false;
    double longest = (double)(count / PAUSES_LEAST), tried = longest * (longest + 1) / 2;
    double each = (double)longer / (double)count;
    pauses->chance = tried * speed_chance(slots, pauses->count, each);
    return pauses->chance <= chance_most;
}

/* Pauses from `least` seconds on; one may reach into the next iteration. */
static void keep_long_pauses(const struct pause_list *all, double least, struct pause_list *pauses)
{
    *pauses = (struct pause_list){.varies = true};
    for (size_t i = 0; i < all->count; i++) {
        bool goes_on = pauses->count && all->at[i] == pauses->at[pauses->count - 1] + 1;
        if (all->each[i] < least)
            continue;
        pauses->extra += all->each[i];
        if (!goes_on)
            pauses->at[pauses->count++] = all->at[i];
    }
}

/* From where on one is long: about as long as most of what is lost; and, beside another cause of
 * long iterations, above the widest gap between their lengths. */
struct long_pauses {
    double about, above;
};

static struct long_pauses find_long(const struct pause_list *all)
{
    struct long_pauses least = {0};
    double *each = malloc((all->count + 1) * sizeof *each), enough = 0, widest = 1;
    if (!each)
        return (struct long_pauses){.about = INFINITY};
    memcpy(each, all->each, all->count * sizeof *each);
    speed_median(each, all->count);
    for (size_t i = all->count; i > 0 && 2 * enough < all->extra; i--) {
        enough += each[i - 1];
        least.about = each[i - 1] * SMALLER_PERCENT / 100;
    }
    for (size_t i = 1; i < all->count; i++) {
        if (each[i] <= widest * each[i - 1])
            continue;
        widest = each[i] / each[i - 1];
        least.above = each[i];
    }
    free(each);
    return least;
}

/* How probable it is that chance makes neither the first nor the last be further from the ends than
 * so many mean distances: these, and the sum of the distances, are independent of how the distances
 * differ. */
static double reach_both_ends(size_t distances, double most)
{
    double n = (double)distances;
    return 1 - 2 * pow(1 + most / n, -n) + pow(1 + 2 * most / n, -n);
}

/* A garbage collector runs when a heap has grown by so much, a checkpoint after so many minutes:
 * the distances vary, but most are near their mean. Those of chance are geometric; of two and more,
 * as neighbours are one pause. */
static bool are_nearly_regular(const struct pause_list *all, size_t count, double least,
                               struct pause_list *pauses)
{
    keep_long_pauses(all, least, pauses);
    if (pauses->count < VARYING_LEAST || 100 * pauses->extra < MOSTLY_PERCENT * all->extra)
        return false;
    size_t distances = pauses->count - 1, near = 0;
    double first = (double)pauses->at[0], last = (double)pauses->at[distances];
    double usual = (last - first) / (double)distances, far = usual * NEAR_PERCENT / 100;
    for (size_t i = 1; i < pauses->count; i++)
        near += fabs((double)(pauses->at[i] - pauses->at[i - 1]) - usual) <= far;
    double goes_on = 1 - 1 / (usual - 1); /* by chance, the distance is longer by one */
    double shortest = fmax(ceil(usual - far), 2), longest = floor(usual + far);
    double each = pow(goes_on, shortest - 2) - pow(goes_on, longest - 1);
    pauses->period = (size_t)(usual + 0.5);
    pauses->chance = each > 0 && each < 1 ? speed_chance(distances, near, each) : 1;
    pauses->chance *= reach_both_ends(distances, 1 + NEAR_PERCENT / 100.0);
    return pauses->chance <= chance_most && first < usual + far &&
           (double)count - last <= usual + far;
}

static bool are_equally_apart(const struct pause_list *all, size_t count, double least,
                              struct pause_list *pauses)
{
    for (size_t period = 2; period <= count / PAUSES_LEAST; period++)
        for (size_t phase = 0; phase < period; phase++)
            if (are_pauses(all, count, least, period, phase, pauses))
                return true;
    return false;
}

static bool are_regular(const struct pause_list *all, size_t count, struct pause_list *pauses)
{
    struct long_pauses least = find_long(all);
    if (are_equally_apart(all, count, least.about, pauses) ||
        are_equally_apart(all, count, 0, pauses))
        return true;
    if (are_nearly_regular(all, count, least.about, pauses))
        return true;
    bool are = least.above > 0 && are_nearly_regular(all, count, least.above, pauses);
    pauses->chance *= 2; /* it had two tries */
    return are && pauses->chance <= chance_most;
}

/* Pauses are longer than what is usual before the step, or since; a copy, which the caller frees.
 */
static double *beyond_usual(const struct judged *judged, const double *value, size_t count)
{
    size_t at = judged->step ? judged->step - judged->first : 0;
    double *beyond = malloc((count + 1) * sizeof *beyond);
    double before = speed_median_of(value, at), after = speed_median_of(value + at, count - at);
    for (size_t i = 0; beyond && i < count; i++)
        beyond[i] = value[i] - (i < at ? before : after);
    return beyond;
}

/* What long iterations are. */
enum pausing { PAUSES_NONE, PAUSES_IRREGULAR, PAUSES_REGULAR };

static enum pausing find_pauses(const struct judged *judged, const double *value,
                                struct pause_list *pauses)
{
    size_t count = judged->end - judged->first;
    double *beyond = beyond_usual(judged, value, count), length = judged->length;
    double *deviation = malloc((count + 1) * sizeof *deviation);
    struct pause_list *all = calloc(1, sizeof *all);
    double least = SHARE_PERCENT * length * (double)count / 100;
    enum pausing found = PAUSES_NONE;
    for (size_t i = 0; deviation && beyond && i < count; i++)
        deviation[i] = fabs(beyond[i]);
    if (deviation && beyond && all) {
        double limit = fmax(6 * speed_median(deviation, count), length * PAUSE_PERCENT / 100);
        for (size_t i = 0; i < count; i++) {
            if (beyond[i] <= limit)
                continue;
            all->at[all->count] = i;
            all->extra += all->each[all->count++] = beyond[i];
        }
        bool is_regular = all->count >= PAUSES_LEAST && are_regular(all, count, pauses);
        if (is_regular && pauses->extra >= least)
            found = PAUSES_REGULAR;
        else if (!is_regular && all->count >= PAUSES_LEAST && all->extra >= least)
            found = PAUSES_IRREGULAR;
    }
    free(deviation);
    free(beyond);
    free(all);
    return found;
}

static struct slowdown pause_of(const struct judged *judged, const struct pause_list *pauses,
                                uint64_t first, size_t count)
{
    return (struct slowdown){.kind = SLOW_PAUSE,
                             .lost = pauses->extra / (double)count,
                             .length = judged->length,
                             .period = pauses->period,
                             .period_varies = pauses->varies,
                             .each = pauses->extra / (double)pauses->count,
                             .times = pauses->count,
                             .first = first + pauses->at[0],
                             .last = first + pauses->at[pauses->count - 1]};
}

/* A rank's own time by iteration; what is not known is the one before. */
static void own_of_rank(const struct judged *judged, const struct speed_rank *rank, double *own)
{
    struct speed_iteration iteration;
    for (uint64_t n = judged->first; n < judged->end; n++) {
        bool known = judged_iteration(rank, n, &iteration);
        size_t i = n - judged->first;
        own[i] = known ? speed_own(&iteration) : 0;
        if (!known && i)
            own[i] = own[i - 1];
    }
}

/* They are more regular than chance makes one of those that were looked at. */
static bool is_clear(const struct pause_list *pauses, uint32_t irregular)
{
    return pauses->chance * (1 + irregular) <= chance_most;
}

/* What each rank loses in pauses, by index, and those of the rank that loses most: in its own time,
 * or, with `beyond_peers`, in what that is longer than its peers'. Of many ranks whose long
 * iterations are chance's, those of one will look regular: *irregular says of how many. */
static double *weigh_pauses(struct judged *judged, bool beyond_peers, struct pause_list *longest,
                            uint32_t *irregular)
{
    size_t count = judged->end - judged->first;
    double *own = malloc((count + 1) * sizeof *own);
    double *lost = calloc(judged->speed->count + 1, sizeof *lost);
    struct pause_list *pauses = malloc(sizeof *pauses);
    longest->extra = 0;
    *irregular = 0;
    for (uint32_t r = 0; own && lost && pauses && r < judged->speed->count; r++) {
        if (beyond_peers && !judged->among[r])
            continue;
        own_of_rank(judged, judged->speed->rank[r], own);
        const double *value = beyond_peers ? judged_excess(judged, r) : own;
        enum pausing is = find_pauses(judged, value, pauses);
        *irregular += is == PAUSES_IRREGULAR;
        lost[r] = is == PAUSES_REGULAR ? pauses->extra : 0;
        if (lost[r] > longest->extra)
            *longest = *pauses;
    }
    if (!is_clear(longest, *irregular))
        longest->extra = 0;
    if (!own || !pauses) {
        free(lost);
        lost = NULL;
    }
    free(own);
    free(pauses);
    return lost;
}

/* Where equal operations were taken for an iteration each, several of them may be one, at whose end
 * all ranks do something else. */
static bool may_be_iterations(const struct judged *judged, const struct slowdown *slowdown)
{
    return !judged->named && judged->speed->rounds_are_alike && !slowdown->period_varies;
}

/* Whether its waiting is no part of its own time. */
static bool shows_waiting(const struct speed_rank *rank)
{
    return rank->kernels || !rank->has_others;
}

/* What each rank loses while others pause, or it does, beyond what most ranks lose: who waits for
 * the others loses nothing of his own, so where nothing shows that a rank waits it counts as
 * losing nothing. NULL: memory is short; the caller frees. */
static double *lost_during(const struct judged *judged, const struct pause_list *pauses)
{
    uint32_t ranks = judged->speed->count;
    size_t count = judged->end - judged->first;
    double *own = malloc((count + 1) * sizeof *own), *lost = calloc(ranks + 1, sizeof *lost);
    bool failed = !own || !lost;
    for (uint32_t r = 0; !failed && r < ranks; r++) {
        own_of_rank(judged, judged->speed->rank[r], own);
        double *beyond = beyond_usual(judged, own, count);
        failed = !beyond;
        for (size_t i = 0; beyond && i < pauses->count; i++)
            lost[r] += beyond[pauses->at[i]];
        free(beyond);
    }
    double most_ranks = failed ? 0 : speed_median_of(lost, ranks);
    for (uint32_t r = 0; !failed && r < ranks; r++)
        lost[r] = shows_waiting(judged->speed->rank[r]) ? lost[r] - most_ranks : 0;
    free(own);
    if (!failed)
        return lost;
    free(lost);
    return NULL;
}

static void add_rank_pauses(struct judged *judged, const struct pause_list *longest,
                            const double *lost, struct slowdowns *found)
{
    const struct speed *speed = judged->speed;
    const struct speed_rank **rank = malloc((speed->count + 1) * sizeof *rank);
    struct slowdown slowdown =
        pause_of(judged, longest, judged->first, judged->end - judged->first);
    if (!rank) {
        found->failed = true;
        return;
    }
    slowdown.rank = rank;
    for (uint32_t r = 0; r < speed->count; r++)
        if (lost[r] > 0 && 100 * lost[r] >= SAME_PAUSE_PERCENT * longest->extra)
            rank[slowdown.ranks++] = speed->rank[r];
    if (slowdown.ranks == speed->count) {
        if (!may_be_iterations(judged, &slowdown))
            slowdowns_add_all(found, speed, &slowdown);
    } else {
        slowdown.comm = slowdown.ranks == 1 ? rank[0]->member->comm : NULL;
        slowdowns_add(found, &slowdown);
    }
    free(rank);
}

/* A rank that pauses with those of its host exceeds only its peers elsewhere, and by chance less
 * than those beside it: who loses as much in these iterations pauses, too. */
static void add_pauses_with_others(struct judged *judged, const struct pause_list *longest,
                                   double *lost, struct slowdowns *found)
{
    double *together = lost_during(judged, longest);
    for (uint32_t r = 0; together && r < judged->speed->count; r++)
        lost[r] = fmax(lost[r], together[r]);
    if (together)
        add_rank_pauses(judged, longest, lost, found);
    else
        found->failed = true;
    free(together);
}

/* Where only the iterations' length shows them, they are those of the ranks that lose most of it;
 * of all, if there are none. */
static void add_pauses_of_length(struct judged *judged, const struct pause_list *pauses,
                                 struct slowdowns *found)
{
    double *lost = lost_during(judged, pauses), most = 0;
    for (uint32_t r = 0; lost && r < judged->speed->count; r++)
        most = fmax(most, lost[r]);
    for (uint32_t r = 0; lost && r < judged->speed->count; r++)
        if (100 * most < SAME_PAUSE_PERCENT * pauses->extra)
            lost[r] = pauses->extra;
    if (lost)
        add_rank_pauses(judged, pauses, lost, found);
    else
        found->failed = true;
    free(lost);
}

/* Waiting for a rank that pauses may be hidden in others' own time, so what is beyond their peers'
 * counts first. Where all peers pause that shows little or nothing. Returns how many ranks have
 * long iterations that are no pauses. */
static uint32_t judge_rank_pauses(struct judged *judged, struct slowdowns *found)
{
    uint32_t irregular = 0;
    struct pause_list *pauses = calloc(2, sizeof *pauses);
    double *beyond = pauses ? weigh_pauses(judged, true, &pauses[0], &irregular) : NULL;
    double *own = beyond ? weigh_pauses(judged, false, &pauses[1], &irregular) : NULL;
    if (!own)
        found->failed = true;
    else if (100 * pauses[0].extra >= SAME_PAUSE_PERCENT * pauses[1].extra && pauses[0].extra > 0)
        add_pauses_with_others(judged, &pauses[0], beyond, found);
    else if (pauses[1].extra > 0)
        add_rank_pauses(judged, &pauses[1], own, found);
    free(pauses);
    free(beyond);
    free(own);
    return irregular;
}

/* Those that show in no rank's own time show in the iterations' length. */
void judge_pauses(struct judged *judged, struct slowdowns *found)
{
    uint32_t before = found->count;
    struct pause_list *pauses = calloc(1, sizeof *pauses);
    double *length = speed_median_lengths(judged);
    uint32_t irregular = judge_rank_pauses(judged, found);
    if (!pauses || !length) {
        found->failed = true;
    } else if (found->count == before && find_pauses(judged, length, pauses) == PAUSES_REGULAR &&
               is_clear(pauses, irregular)) {
        add_pauses_of_length(judged, pauses, found);
    }
    free(pauses);
    free(length);
}
