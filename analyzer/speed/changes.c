/* changes.c: iterations that became longer at some point, and pauses that come again and again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/slowdown.h"

enum {
    SCORE_LEAST = 4,       /* standard errors between before and after */
    WORK_STEP_PERCENT = 5, /* of an iteration, by which the median rank's own work is longer */
    SURE_PERCENT = 78,     /* of pairs of a later and an earlier iteration, the later is longer */
    SURER_PERCENT = 85,    /* likewise, where they are longer by little */
    LITTLE_PERCENT = 5,    /* of an iteration */
    PAUSES_LEAST = 4,
    PAUSE_PERCENT = 15,     /* of the median iteration, or six times the usual deviation */
    REGULAR_PERCENT = 80,   /* of the times at which one is due have one */
    MOSTLY_PERCENT = 60,    /* of what is lost in long iterations is lost in these */
    SAME_PAUSE_PERCENT = 50 /* of the longest rank's, which a rank that pauses loses */
};

/* Of an iteration: all of it, or what the rank itself does in it. */
static double length_of(const struct speed_iteration *iteration)
{
    return iteration->length;
}
static double work_of(const struct speed_iteration *iteration)
{
    return speed_own(iteration) - iteration->share[SHARE_TRANSFER];
}

/* The median rank's, by number; what is not known is the one before. */
static double *medians_of(const struct judged *judged, uint64_t first,
                          double (*value_of)(const struct speed_iteration *iteration))
{
    uint64_t count = judged->end - first;
    double *median = malloc((count + 1) * sizeof *median);
    double *value = malloc((judged->speed->count + 1) * sizeof *value);
    for (uint64_t n = 0; median && value && n < count; n++) {
        size_t known = 0;
        for (uint32_t r = 0; r < judged->speed->count; r++) {
            struct speed_iteration iteration;
            if (judged_iteration(judged->speed->rank[r], first + n, &iteration))
                value[known++] = value_of(&iteration);
        }
        median[n] = known || !n ? speed_median(value, known) : median[n - 1];
    }
    if (!value) {
        free(median);
        median = NULL;
    }
    free(value);
    return median;
}

double *speed_median_lengths(const struct judged *judged)
{
    return medians_of(judged, judged->first, length_of);
}

struct sums {
    double sum, squares;
    size_t count;
};

static double variance_of(const struct sums *sums)
{
    double mean = sums->sum / (double)sums->count;
    double variance = sums->squares / (double)sums->count - mean * mean;
    return variance > 0 ? variance : 0;
}

/* Standard errors between the means before and after (Welch's t). */
static double score_of(const struct sums *before, const struct sums *after)
{
    double error = sqrt(variance_of(before) / (double)before->count +
                        variance_of(after) / (double)after->count);
    double rise = after->sum / (double)after->count - before->sum / (double)before->count;
    double least = 1e-6 * after->sum / (double)after->count; /* noise there always is */
    return rise / (error > least ? error : least);
}

/* The place where what follows is longest beyond what was before; *score says how sure. */
static size_t find_step(const double *value, size_t count, double *score)
{
    struct sums all = {0}, before = {0};
    size_t best = 0;
    *score = 0;
    for (size_t i = 0; i < count; i++) {
        all.sum += value[i];
        all.squares += value[i] * value[i];
        all.count++;
    }
    for (size_t i = 0; i + ITERATIONS_NEEDED <= count; i++) {
        struct sums after = {all.sum - before.sum, all.squares - before.squares,
                             all.count - before.count};
        double here = before.count >= ITERATIONS_NEEDED ? score_of(&before, &after) : 0;
        if (here > *score) {
            *score = here;
            best = i;
        }
        before.sum += value[i];
        before.squares += value[i] * value[i];
        before.count++;
    }
    return best;
}

/* How often a later iteration is longer than an earlier one. */
static double sureness(const double *value, size_t step, size_t count)
{
    size_t longer = 0;
    for (size_t i = 0; i < step; i++)
        for (size_t k = step; k < count; k++)
            longer += value[k] > value[i];
    return longer ? (double)longer / ((double)step * (double)(count - step)) : 0;
}

static double median_copy(const double *value, size_t count)
{
    double *copy = malloc((count + 1) * sizeof *copy), median = 0;
    if (copy) {
        memcpy(copy, value, count * sizeof *copy);
        median = speed_median(copy, count);
    }
    free(copy);
    return median;
}

double *speed_places(const double *value, size_t count)
{
    double *place = calloc(count + 1, sizeof *place);
    for (size_t i = 0; place && i < count; i++)
        for (size_t k = 0; k < count; k++)
            place[i] += value[k] < value[i];
    return place;
}

static bool step_in(const double *value, size_t count, struct slowdown *step,
                    struct slowdowns *found)
{
    double *place = value ? speed_places(value, count) : NULL, score = 0;
    if (!place) {
        found->failed = true;
        return false;
    }
    size_t at = find_step(place, count, &score);
    free(place);
    double before = median_copy(value, at), after = median_copy(value + at, count - at);
    *step = (struct slowdown){.kind = SLOW_SINCE,
                              .lost = after - before,
                              .length = after,
                              .since = at,
                              .confidence = sureness(value, at, count)};
    return at && score >= SCORE_LEAST && 100 * step->confidence >= SURE_PERCENT;
}

static void place_step(const struct judged *judged, uint64_t first, struct slowdown *step)
{
    step->since += first;
    step->until = judged->until;
    step->first = step->since;
    step->last = judged->end - 1;
}

bool judge_step(const struct judged *judged, struct slowdown *step, struct slowdowns *found)
{
    double *length = speed_median_lengths(judged);
    bool is_step = step_in(length, judged->end - judged->first, step, found) &&
                   100 * step->lost >= SHARE_PERCENT * step->length;
    if (100 * step->lost < LITTLE_PERCENT * step->length)
        is_step = is_step && 100 * step->confidence >= SURER_PERCENT;
    place_step(judged, judged->first, step);
    free(length);
    return is_step;
}

bool judge_work_step(const struct judged *judged, uint64_t first, struct slowdown *step,
                     struct slowdowns *found)
{
    double *work = medians_of(judged, first, work_of);
    bool is_step = step_in(work, judged->end - first, step, found);
    place_step(judged, first, step);
    step->length = judged->length;
    step->is_part = true;
    free(work);
    return is_step && 100 * step->lost >= WORK_STEP_PERCENT * step->length;
}

/* Iterations that are longer than usual by far. */
struct pause_list {
    size_t at[ITERATIONS_KEPT];
    double each[ITERATIONS_KEPT]; /* seconds beyond the usual */
    size_t count, period;
    double extra; /* of all of them */
};

/* Whether those at equal distances from `phase` on are most of all that is lost; a pause may reach
 * into the next iteration. */
static bool are_pauses(const struct pause_list *all, size_t count, size_t period, size_t phase,
                       struct pause_list *pauses)
{
    double extra[ITERATIONS_KEPT + 1] = {0};
    size_t slots = 0;
    for (size_t i = 0; i < all->count; i++)
        extra[all->at[i]] = all->each[i];
    *pauses = (struct pause_list){.period = period};
    for (size_t i = phase; i < count; i += period, slots++) {
        if (!(extra[i] > 0))
            continue;
        pauses->extra += extra[i] + extra[i + 1];
        pauses->at[pauses->count++] = i;
    }
    return pauses->count >= PAUSES_LEAST && 100 * pauses->count >= REGULAR_PERCENT * slots &&
           100 * pauses->extra >= MOSTLY_PERCENT * all->extra;
}

static bool are_regular(const struct pause_list *all, size_t count, struct pause_list *pauses)
{
    for (size_t period = 2; period <= count / PAUSES_LEAST; period++)
        for (size_t phase = 0; phase < period; phase++)
            if (are_pauses(all, count, period, phase, pauses))
                return true;
    return false;
}

/* Pauses are longer than what is usual before the step, or since; a copy, which the caller frees.
 */
static double *beyond_usual(const struct judged *judged, const double *value, size_t count)
{
    size_t at = judged->step ? judged->step - judged->first : 0;
    double *beyond = malloc((count + 1) * sizeof *beyond);
    double before = median_copy(value, at), after = median_copy(value + at, count - at);
    for (size_t i = 0; beyond && i < count; i++)
        beyond[i] = value[i] - (i < at ? before : after);
    return beyond;
}

static bool find_pauses(const struct judged *judged, const double *value, struct pause_list *pauses)
{
    size_t count = judged->end - judged->first;
    double *beyond = beyond_usual(judged, value, count), length = judged->length;
    double *deviation = malloc((count + 1) * sizeof *deviation);
    struct pause_list *all = calloc(1, sizeof *all);
    bool found = false;
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
        found = all->count >= PAUSES_LEAST && are_regular(all, count, pauses) &&
                100 * pauses->extra >= SHARE_PERCENT * length * (double)count;
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

/* What each rank loses in pauses, by index, and those of the rank that loses most: in its own time,
 * or, with `beyond_peers`, in what that is longer than its peers'. */
static double *weigh_pauses(struct judged *judged, bool beyond_peers, struct pause_list *longest)
{
    size_t count = judged->end - judged->first;
    double *own = malloc((count + 1) * sizeof *own);
    double *lost = calloc(judged->speed->count + 1, sizeof *lost);
    struct pause_list *pauses = malloc(sizeof *pauses);
    longest->extra = 0;
    for (uint32_t r = 0; own && lost && pauses && r < judged->speed->count; r++) {
        if (beyond_peers && !judged->among[r])
            continue;
        own_of_rank(judged, judged->speed->rank[r], own);
        const double *value = beyond_peers ? judged_excess(judged, r) : own;
        if (!find_pauses(judged, value, pauses))
            continue;
        lost[r] = pauses->extra;
        if (pauses->extra > longest->extra)
            *longest = *pauses;
    }
    if (!own || !pauses) {
        free(lost);
        lost = NULL;
    }
    free(own);
    free(pauses);
    return lost;
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
        slowdowns_add_all(found, speed, &slowdown);
    } else {
        slowdown.comm = slowdown.ranks == 1 ? rank[0]->member->comm : NULL;
        slowdowns_add(found, &slowdown);
    }
    free(rank);
}

/* Waiting for a rank that pauses may be hidden in others' own time, so what is beyond their peers'
 * counts first. Where all peers pause that shows little or nothing. */
static void judge_rank_pauses(struct judged *judged, struct slowdowns *found)
{
    struct pause_list *pauses = calloc(2, sizeof *pauses);
    double *beyond = pauses ? weigh_pauses(judged, true, &pauses[0]) : NULL;
    double *own = beyond ? weigh_pauses(judged, false, &pauses[1]) : NULL;
    if (!own)
        found->failed = true;
    else if (100 * pauses[0].extra >= SAME_PAUSE_PERCENT * pauses[1].extra && pauses[0].extra > 0)
        add_rank_pauses(judged, &pauses[0], beyond, found);
    else if (pauses[1].extra > 0)
        add_rank_pauses(judged, &pauses[1], own, found);
    free(pauses);
    free(beyond);
    free(own);
}

/* Those that show in no rank's own time show in the iterations' length. */
void judge_pauses(struct judged *judged, struct slowdowns *found)
{
    size_t count = judged->end - judged->first;
    uint32_t before = found->count;
    struct pause_list *pauses = calloc(1, sizeof *pauses);
    double *length = speed_median_lengths(judged);
    judge_rank_pauses(judged, found);
    if (!pauses || !length) {
        found->failed = true;
    } else if (found->count == before && find_pauses(judged, length, pauses)) {
        struct slowdown slowdown = pause_of(judged, pauses, judged->first, count);
        slowdowns_add_all(found, judged->speed, &slowdown);
    }
    free(pauses);
    free(length);
}
