/* changes.c: iterations that became longer at some point, and pauses that come again and again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/slowdown.h"

enum {
    SCORE_LEAST = 4,   /* standard errors between before and after */
    SURE_PERCENT = 78, /* of pairs of a later and an earlier iteration, the later is longer */
    PAUSES_LEAST = 4,
    PAUSE_PERCENT = 15,  /* of the median iteration, or six times the usual deviation */
    REGULAR_PERCENT = 80 /* of the distances between pauses are the same */
};

/* The median rank's iteration, by number; what is not known is the one before. */
static double *lengths_of(const struct judged *judged)
{
    uint64_t count = judged->end - judged->first;
    double *length = malloc((count + 1) * sizeof *length);
    double *value = malloc((judged->speed->count + 1) * sizeof *value);
    for (uint64_t n = 0; length && value && n < count; n++) {
        size_t known = 0;
        for (uint32_t r = 0; r < judged->speed->count; r++) {
            struct speed_iteration iteration;
            if (judged_iteration(judged, judged->speed->rank[r], judged->first + n, &iteration))
                value[known++] = iteration.length;
        }
        length[n] = known || !n ? speed_median(value, known) : length[n - 1];
    }
    if (!value) {
        free(length);
        length = NULL;
    }
    free(value);
    return length;
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

/* The place of each value among all: single long iterations (pauses) weigh no more than others. */
static double *places_of(const double *value, size_t count)
{
    double *place = calloc(count + 1, sizeof *place);
    for (size_t i = 0; place && i < count; i++)
        for (size_t k = 0; k < count; k++)
            place[i] += value[k] < value[i];
    return place;
}

bool judge_step(const struct judged *judged, struct slowdown *step, struct slowdowns *found)
{
    size_t count = judged->end - judged->first;
    double *length = lengths_of(judged), *place = length ? places_of(length, count) : NULL;
    double score = 0;
    if (!place) {
        found->failed = true;
        free(length);
        return false;
    }
    size_t at = find_step(place, count, &score);
    double before = median_copy(length, at), after = median_copy(length + at, count - at);
    *step = (struct slowdown){.kind = SLOW_SINCE,
                              .lost = after - before,
                              .length = after,
                              .since = judged->first + at,
                              .first = judged->first + at,
                              .last = judged->end - 1,
                              .confidence = sureness(length, at, count)};
    free(place);
    free(length);
    return at && score >= SCORE_LEAST && 100 * step->lost >= SHARE_PERCENT * after &&
           100 * step->confidence >= SURE_PERCENT;
}

/* Iterations that are longer than usual by far, and whether they come in equal distances. */
struct pause_list {
    size_t at[ITERATIONS_KEPT];
    size_t count, period;
    double extra; /* seconds of all of them */
};

static int compare_sizes(const void *a, const void *b)
{
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    return (left > right) - (left < right);
}

static bool are_regular(struct pause_list *pauses)
{
    size_t distance[ITERATIONS_KEPT], same = 0, distances = pauses->count - 1;
    for (size_t i = 0; i < distances; i++)
        distance[i] = pauses->at[i + 1] - pauses->at[i];
    qsort(distance, distances, sizeof *distance, compare_sizes);
    pauses->period = distance[distances / 2];
    size_t slack = pauses->period > 10;
    for (size_t i = 0; i < distances; i++)
        same += distance[i] + slack >= pauses->period && distance[i] <= pauses->period + slack;
    return pauses->period > 1 && 100 * same >= REGULAR_PERCENT * distances;
}

static bool find_pauses(const double *value, size_t count, double length, struct pause_list *pauses)
{
    double median = median_copy(value, count);
    double *deviation = malloc((count + 1) * sizeof *deviation);
    *pauses = (struct pause_list){0};
    if (!deviation)
        return false;
    for (size_t i = 0; i < count; i++)
        deviation[i] = fabs(value[i] - median);
    double limit = 6 * speed_median(deviation, count);
    free(deviation);
    if (limit < length * PAUSE_PERCENT / 100)
        limit = length * PAUSE_PERCENT / 100;
    for (size_t i = 0; i < count; i++)
        if (value[i] - median > limit) {
            pauses->at[pauses->count++] = i;
            pauses->extra += value[i] - median;
        }
    return pauses->count >= PAUSES_LEAST && are_regular(pauses) &&
           100 * pauses->extra >= SHARE_PERCENT * length * (double)count;
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

/* Those of some ranks show in their own time. Fills in `slowdown`, of which the caller gives the
 * room for ranks. */
static void find_rank_pauses(struct judged *judged, struct pause_list *pauses,
                             const struct speed_rank **rank, struct slowdown *slowdown)
{
    uint64_t iterations = judged->end - judged->first;
    for (uint32_t r = 0; r < judged->speed->count; r++) {
        if (!judged->among[r] ||
            !find_pauses(judged_excess(judged, r), iterations, judged->length, pauses))
            continue;
        struct slowdown here = pause_of(judged, pauses, judged->first, iterations);
        here.ranks = slowdown->ranks;
        here.comm = judged->among[r];
        if (!slowdown->ranks || slowdown->lost < here.lost)
            *slowdown = here;
        rank[slowdown->ranks++] = judged->speed->rank[r];
    }
    slowdown->rank = rank;
}

/* Those of all ranks show in the iterations' length. */
void judge_pauses(struct judged *judged, struct slowdowns *found)
{
    size_t count = judged->end - judged->first;
    const struct speed_rank **rank = malloc((judged->speed->count + 1) * sizeof *rank);
    struct pause_list *pauses = malloc(sizeof *pauses);
    double *length = lengths_of(judged);
    struct slowdown slowdown = {0};
    if (!rank || !pauses || !length)
        found->failed = true;
    else
        find_rank_pauses(judged, pauses, rank, &slowdown);
    if (slowdown.ranks) {
        slowdowns_add(found, &slowdown);
    } else if (!found->failed && find_pauses(length, count, judged->length, pauses)) {
        slowdown = pause_of(judged, pauses, judged->first, count);
        slowdowns_add_all(found, judged->speed, &slowdown);
    }
    free(rank);
    free(pauses);
    free(length);
}
