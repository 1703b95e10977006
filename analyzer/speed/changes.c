/* changes.c: iterations that became longer at some point. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/slowdown.h"

enum {
    SCORE_LEAST = 4,       /* standard errors between before and after */
    WORK_STEP_PERCENT = 3, /* of an iteration, by which the median rank's own work is longer */
    BEFORE_PERCENT = 25,   /* of what the work takes longer, by ratio, that its beginning does */
    SURE_PERCENT = 78,     /* of pairs of a later and an earlier iteration, the later is longer */
    SURER_PERCENT = 85,    /* of the same pairs, where they are longer by little */
    LITTLE_PERCENT = 5     /* of an iteration */
};

/* Of an iteration: all of it, or what the rank itself does in it. */
static double length_of(const struct speed_iteration *iteration)
{
    return iteration->length;
}
static double before_of(const struct speed_iteration *iteration)
{
    return iteration->before;
}
static double work_of(const struct speed_iteration *iteration)
{
    return speed_own(iteration) - iteration->share[SHARE_TRANSFER];
}

/* The median rank's, by number; what is not known takes the previous value. */
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

static double mean_of_rank(const struct judged *judged, const struct speed_rank *rank)
{
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t n = judged->first; n < judged->end; n++) {
        struct speed_iteration iteration;
        if (!judged_iteration(rank, n, &iteration))
            continue;
        sum += iteration.length;
        count++;
    }
    return count ? sum / (double)count : 0;
}

double speed_mean_length(const struct judged *judged)
{
    double *mean = malloc((judged->speed->count + 1) * sizeof *mean), median;
    for (uint32_t r = 0; mean && r < judged->speed->count; r++)
        mean[r] = mean_of_rank(judged, judged->speed->rank[r]);
    median = mean ? speed_median(mean, judged->speed->count) : 0;
    free(mean);
    return median;
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

double *speed_places(const double *value, size_t count)
{
    double *place = calloc(count + 1, sizeof *place);
    for (size_t i = 0; place && i < count; i++)
        for (size_t k = 0; k < count; k++)
            place[i] += value[k] < value[i];
    return place;
}

size_t speed_find_step(const double *value, size_t count)
{
    double *place = speed_places(value, count), score = 0;
    size_t at = place ? find_step(place, count, &score) : 0;
    free(place);
    return score >= SCORE_LEAST ? at : 0;
}

static bool step_in(const double *value, size_t count, struct slowdown *step,
                    struct slowdowns *found)
{
    double *place = value ? speed_places(value, count) : NULL, score = 0;
    *step = (struct slowdown){0};
    if (!place) {
        found->failed = true;
        return false;
    }
    size_t at = find_step(place, count, &score);
    free(place);
    double before = speed_median_of(value, at), after = speed_median_of(value + at, count - at);
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

/* Where kernels are not recorded, waiting beside work may look like it. Until its first operation
 * begins, a rank waits for nobody: if its work takes longer, it does so there, too. */
static bool shows_before(const struct judged *judged, uint64_t first, const struct slowdown *step)
{
    size_t count = judged->end - first, at = step->since;
    double *value = judged->shows_kernels ? NULL : medians_of(judged, first, before_of);
    double before = value ? speed_median_of(value, at) : 0;
    double rise = value ? speed_median_of(value + at, count - at) - before : 0;
    double work = step->length - step->lost;
    free(value);
    return judged->shows_kernels ||
           (rise > 0 && 100 * rise * work >= BEFORE_PERCENT * step->lost * before);
}

bool judge_work_step(const struct judged *judged, uint64_t first, struct slowdown *step,
                     struct slowdowns *found)
{
    double *work = medians_of(judged, first, work_of);
    bool is_step = step_in(work, judged->end - first, step, found) &&
                   shows_before(judged, first, step);
    place_step(judged, first, step);
    step->length = judged->length;
    step->is_part = true;
    step->is_alone = !found->count;
    free(work);
    return is_step && 100 * step->lost >= WORK_STEP_PERCENT * step->length;
}
