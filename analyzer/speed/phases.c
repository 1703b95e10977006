/* phases.c: parts of the job in which iterations are longer, and that end before the job does: its
 * first iterations, or any. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/speed/slowdown.h"

enum {
    PHASE_SCORE = 6,        /* standard errors between the part and the rest */
    PHASE_SURE_PERCENT = 85 /* of pairs of an iteration of the part and another, it is longer */
};

enum {
    WARM_UP_MOST = 10, /* iterations */
    WARM_UP_APART = 4,
    WARM_UP_TIMES = 3, /* the usual length */
    AGAIN_LEAST = 2    /* later iterations half as long: it is no warming up */
};

static bool comes_again(const double *length, size_t count, double long_s)
{
    size_t again = 0;
    for (size_t i = WARM_UP_MOST; i < count; i++)
        again += 2 * length[i] >= long_s;
    return again >= AGAIN_LEAST;
}

size_t speed_warm_up(const struct judged *judged)
{
    double *length = speed_median_lengths(judged);
    size_t count = judged->end - judged->first, warm = 0;
    double usual = length ? speed_median_of(length, count) : 0;
    for (size_t i = 0; length && i < WARM_UP_MOST && i + ITERATIONS_NEEDED < count; i++)
        if (length[i] > WARM_UP_TIMES * usual && i <= warm + WARM_UP_APART &&
            !comes_again(length, count, length[i]))
            warm = i + 1;
    free(length);
    return warm;
}

/* Sums of the first values, by how many. */
struct running {
    double *sum, *squares;
};

static int run_sums(const double *value, size_t count, struct running *running)
{
    running->sum = calloc(count + 1, sizeof *running->sum);
    running->squares = calloc(count + 1, sizeof *running->squares);
    if (!running->sum || !running->squares)
        return -1;
    for (size_t i = 0; i < count; i++) {
        running->sum[i + 1] = running->sum[i] + value[i];
        running->squares[i + 1] = running->squares[i] + value[i] * value[i];
    }
    return 0;
}

static double error_of(double sum, double squares, double count)
{
    double mean = sum / count, variance = squares / count - mean * mean;
    return (variance > 0 ? variance : 0) / count;
}

/* Welch's t of [begin, end) against all others. */
static double phase_score(const struct running *running, size_t count, size_t begin, size_t end)
{
    double in = running->sum[end] - running->sum[begin], out = running->sum[count] - in;
    double in_squares = running->squares[end] - running->squares[begin];
    double inside = (double)(end - begin), outside = (double)(count - (end - begin));
    double rise = in / inside - out / outside;
    double error = sqrt(error_of(in, in_squares, inside) +
                        error_of(out, running->squares[count] - in_squares, outside));
    double least = 1e-6 * in / inside; /* noise there always is */
    return rise / fmax(error, least);
}

static bool is_sure(const double *value, size_t count, size_t begin, size_t end)
{
    size_t longer = 0, pairs = 0;
    for (size_t i = begin; i < end; i++)
        for (size_t k = 0; k < count; k++) {
            bool is_outside = k < begin || k >= end;
            pairs += is_outside;
            longer += is_outside && value[i] > value[k];
        }
    return 100 * longer >= PHASE_SURE_PERCENT * pairs;
}

static bool is_longer(const double *value, size_t count, size_t begin, size_t end)
{
    double *part = malloc((count + 1) * sizeof *part);
    size_t inside = 0, outside = 0;
    for (size_t i = begin; part && i < end; i++)
        part[inside++] = value[i];
    double in = part ? speed_median(part, inside) : 0;
    for (size_t i = 0; part && i < count; i++)
        if (i < begin || i >= end)
            part[outside++] = value[i];
    double out = part ? speed_median(part, outside) : 0;
    free(part);
    return 100 * (in - out) >= SHARE_PERCENT * in;
}

/* Iterations near each other may be alike, so both the part and what is after it are long. */
static size_t find_phase(const double *place, size_t count, size_t *begin)
{
    struct running running = {0};
    double best = 0;
    size_t found = 0;
    if (!run_sums(place, count, &running))
        for (size_t end = ITERATIONS_NEEDED; end <= count; end++) {
            if (end < count && end + ITERATIONS_NEEDED > count)
                continue;
            for (size_t from = 0; from + ITERATIONS_NEEDED <= end; from++) {
                if (count - (end - from) < ITERATIONS_NEEDED)
                    continue;
                double score = phase_score(&running, count, from, end);
                if (score <= best)
                    continue;
                best = score;
                found = end;
                *begin = from;
            }
        }
    free(running.sum);
    free(running.squares);
    return best >= PHASE_SCORE ? found : 0;
}

uint64_t judge_phase_end(const struct judged *judged, struct slowdowns *found)
{
    size_t count = judged->end - judged->first, begin = 0, end = 0;
    double *length = speed_median_lengths(judged), *place = NULL;
    if (count >= 2 * ITERATIONS_NEEDED && length && (place = speed_places(length, count)))
        end = find_phase(place, count, &begin);
    bool is_phase = end && end < count && is_sure(length, count, begin, end) &&
                    is_longer(length, count, begin, end);
    found->failed |= !length || (count >= 2 * ITERATIONS_NEEDED && !place);
    free(place);
    free(length);
    return is_phase ? judged->first + end : 0;
}
