/* rounds.c: which operations are an iteration, where the program names none.
 *
 * A rank's rounds are counted by the operations of its widest communicator. Iterations repeat
 * themselves, so the gaps in front of these operations repeat after as many of them as an iteration
 * has: the smallest distance at which they differ about as little as at any. The median rank's gaps
 * are compared, in which what only some ranks do does not show. Sizes have to repeat as well. Where
 * the host's noise is larger than the gaps, or their times are not exact enough, only they are
 * left. Where a communicator marks iterations (markers.c), rounds are counted by it, and as many
 * other operations lie between its operations one iteration after another. Until it is known,
 * operations are held. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/model/exact.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"

enum {
    ROUND_MAX = 512,     /* operations */
    RANKS_COMPARED = 64, /* evenly chosen, if there are more */
    HELD_LEAST = 64,     /* operations of each rank, before anything is tried */
    HELD_MOST = 8192,    /* then what fits best is an iteration */
    ABOUT_PERCENT = 15,  /* of the way from the least difference to the mean one */
    ABOUT_LEAST_PERCENT = 10,
    CLEARLY_PERCENT = 50,    /* of the mean difference, while more may come */
    SAME_PERCENT = 75,       /* of it at all distances: gaps do not repeat themselves */
    SAME_LEAST = 192,        /* gaps, for that to be believed while more may come */
    SURE_TIMES = 4,          /* its own deviation: a mean of so much is no chance */
    REPEATS = 8,             /* so often others come as often between those of a marker */
    OTHERS_PERCENT = 10,     /* of their mean number may differ, */
    OWN_OTHERS_PERCENT = 20, /* on one rank */
    SIZES_PERCENT = 2,       /* of the operations may have another size than the previous */
    ROUND_NOT_FOUND = 2      /* operations, where nothing repeats itself */
};

/* How often progress words are read, and with them when operations begin and end. */
static const double reading_s = 0.001;

/* How many operations that count are held, and the gap in front of each but the first; the caller
 * frees. NULL: memory is short. */
static double *gaps_of(struct speed_rank *rank, size_t *count)
{
    double *gap = malloc((rank->operations + 1) * sizeof *gap);
    uint64_t end_ns = 0;
    *count = 0;
    for (uint64_t i = 0; gap && i < rank->operations; i++) {
        const struct speed_operation *operation =
            speed_operation_find(rank, rank->first_operation + i);
        if (!speed_is_counted(rank, operation))
            continue;
        bool is_late = operation->started_ns > end_ns && end_ns;
        gap[(*count)++] = is_late ? (double)(operation->started_ns - end_ns) / 1e9 : 0;
        end_ns = operation->done_ns;
    }
    return gap;
}

static size_t held_of(struct speed_rank *rank)
{
    size_t count = 0;
    for (uint64_t i = 0; i < rank->operations; i++)
        count += speed_is_counted(rank, speed_operation_find(rank, rank->first_operation + i));
    return count;
}

/* Operations that do not count, and show that what they are between is one. */
static bool has_others(const struct speed *speed)
{
    uint64_t all = 0, counted = 0;
    for (uint32_t r = 0; r < speed->count; r++) {
        if (!speed_rank_holds(speed->rank[r]))
            continue;
        all += speed->rank[r]->operations;
        counted += held_of(speed->rank[r]);
    }
    return 2 * (all - counted) > counted;
}

/* How much else a rank does between those that count; the caller frees. NULL: memory is short. */
static double *others_of(struct speed_rank *rank)
{
    double *others = calloc(rank->operations + 2, sizeof *others);
    size_t count = 0;
    for (uint64_t i = 0; others && i < rank->operations; i++) {
        const struct speed_operation *operation =
            speed_operation_find(rank, rank->first_operation + i);
        if (speed_is_counted(rank, operation))
            count++;
        else
            others[count] += speed_is_work(operation);
    }
    return others;
}

/* The gaps of the median rank, how many other operations it has behind each that counts, and the
 * sizes of one rank's operations. */
struct gap_series {
    double *gap[RANKS_COMPARED], *others[RANKS_COMPARED], *median, *median_others;
    float *bytes;
    uint32_t ranks;
    size_t count;      /* that all of them have */
    double resolution; /* of their times, in seconds */
};

static void free_gaps(struct gap_series *series)
{
    for (uint32_t i = 0; i < series->ranks; i++) {
        free(series->gap[i]);
        free(series->others[i]);
    }
    free(series->median);
    free(series->median_others);
    free(series->bytes);
}

static float *sizes_held(struct speed_rank *rank)
{
    float *bytes = malloc((rank->operations + 1) * sizeof *bytes);
    size_t count = 0;
    for (uint64_t i = 0; bytes && i < rank->operations; i++) {
        const struct speed_operation *operation =
            speed_operation_find(rank, rank->first_operation + i);
        if (speed_is_counted(rank, operation))
            bytes[count++] = operation->bytes;
    }
    return bytes;
}

/* What comes in each iteration comes as often as there are iterations: longer gaps are rare. */
static int cut_rare(double *value, size_t count)
{
    double *sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return -1;
    for (size_t i = 0; i < count; i++)
        sorted[i] = value[i];
    speed_median(sorted, count);
    for (size_t i = 0; i < count; i++)
        value[i] = fmin(value[i], sorted[count - ITERATIONS_NEEDED]);
    free(sorted);
    return 0;
}

static double *median_of(double *const *value, uint32_t ranks, size_t count)
{
    double at[RANKS_COMPARED], *median = malloc((count + 1) * sizeof *median);
    for (size_t i = 0; median && i < count; i++) {
        for (uint32_t r = 0; r < ranks; r++)
            at[r] = value[r][i];
        median[i] = speed_median(at, ranks);
    }
    return median;
}

static int find_gaps(const struct speed *speed, struct gap_series *series)
{
    uint32_t step = (speed->count + RANKS_COMPARED - 1) / RANKS_COMPARED;
    *series = (struct gap_series){.count = SIZE_MAX};
    for (uint32_t r = 0; r < speed->count; r += step) {
        size_t count;
        uint32_t at = series->ranks;
        if (!speed_rank_holds(speed->rank[r]))
            continue;
        series->ranks++;
        if (!(series->gap[at] = gaps_of(speed->rank[r], &count)) ||
            !(series->others[at] = others_of(speed->rank[r])) ||
            (!series->bytes && !(series->bytes = sizes_held(speed->rank[r]))))
            return -1;
        series->count = count < series->count ? count : series->count;
        const struct process *process = speed->rank[r]->key.process;
        if (process_is_recorded(process) && !exact_is_complete(process))
            series->resolution = reading_s;
    }
    if (!series->ranks)
        series->count = 0;
    series->median = median_of(series->gap, series->ranks, series->count);
    series->median_others = median_of(series->others, series->ranks, series->count);
    if (!series->median || !series->median_others)
        return -1;
    return series->count > ITERATIONS_NEEDED ? cut_rare(series->median, series->count) : 0;
}

/* How much gaps differ from those `distance` further on, on average. */
static double difference_at(const double *value, size_t count, size_t distance)
{
    double sum = 0;
    for (size_t i = 0; i + distance < count; i++)
        sum += fabs(value[i + distance] - value[i]);
    return sum / (double)(count - distance);
}

/* How many operations have another size than those `distance` further on. */
static size_t other_sizes_at(const float *bytes, size_t count, size_t distance)
{
    size_t others = 0;
    for (size_t i = 0; i + distance < count; i++)
        others += bytes[i] < bytes[i + distance] || bytes[i] > bytes[i + distance];
    return others;
}

/* The distances at which sizes repeat themselves; all, if sizes differ from iteration to iteration.
 */
static void mark_possible(const struct gap_series *series, size_t most, bool *is_possible)
{
    double share[ROUND_MAX + 1], least = 1;
    for (size_t distance = 1; distance <= most; distance++) {
        share[distance] = (double)other_sizes_at(series->bytes, series->count, distance) /
                          (double)(series->count - distance);
        least = fmin(least, share[distance]);
    }
    for (size_t distance = 1; distance <= most; distance++)
        is_possible[distance] = 100 * least > SIZES_PERCENT ||
                                100 * share[distance] <= SIZES_PERCENT;
}

/* The smallest possible distance at which gaps differ by `about` at most. */
static uint64_t first_distance(const bool *is_possible, const double *difference, size_t most,
                               double about)
{
    for (size_t distance = 1; distance <= most; distance++)
        if (is_possible[distance] && difference[distance] <= about)
            return distance;
    return 0;
}

/* Whether gaps differ less from those `distance` further on than from others, not only by chance.
 */
static bool is_surely_less(const double *value, size_t count, size_t most, size_t distance)
{
    double sum = 0, squares = 0;
    size_t compared = count - most;
    for (size_t i = 0; i < compared; i++) {
        double others = 0;
        for (size_t other = 1; other <= most; other++)
            others += fabs(value[i + other] - value[i]);
        double less = others / (double)most - fabs(value[i + distance] - value[i]);
        sum += less;
        squares += less * less;
    }
    double mean = sum / (double)compared;
    double variance = fmax(squares / (double)compared - mean * mean, 0) / (double)compared;
    return mean > 0 && mean * mean >= SURE_TIMES * SURE_TIMES * variance;
}

/* 0: not clear, or too few. */
static uint64_t find_distance(const struct gap_series *series, bool is_last)
{
    double difference[ROUND_MAX + 1], least = INFINITY, sum = 0;
    bool is_possible[ROUND_MAX + 1];
    size_t count = series->count, closest = 1;
    size_t most = count / ITERATIONS_NEEDED < ROUND_MAX ? count / ITERATIONS_NEEDED : ROUND_MAX;
    mark_possible(series, most, is_possible);
    for (size_t distance = 1; distance <= most; distance++) {
        difference[distance] = difference_at(series->median, count, distance);
        if (is_possible[distance] && difference[distance] < least)
            least = difference[closest = distance];
        sum += difference[distance];
    }
    double share = sum > 0 ? 100 * least * (double)most / sum : 0;
    bool is_noise =
        share > SAME_PERCENT || sum < series->resolution * (double)most ||
        (share > CLEARLY_PERCENT && !is_surely_less(series->median, count, most, closest));
    if (most && is_noise)
        return is_last || count >= SAME_LEAST
                   ? first_distance(is_possible, difference, most, INFINITY)
                   : 0;
    if (!most || (!is_last && share > CLEARLY_PERCENT))
        return 0;
    double about = fmax(least * (1 + ABOUT_LEAST_PERCENT / 100.0),
                        least + (sum / (double)most - least) * ABOUT_PERCENT / 100);
    return first_distance(is_possible, difference, most, about);
}

/* After how many operations of a marker the same number of others lies between; 0: not clear. */
static uint64_t find_repeating(const struct gap_series *series)
{
    if (series->count < 1)
        return 0;
    bool is_possible[ROUND_MAX + 1];
    const double *others = series->median_others + 1; /* before the first they may be cut */
    size_t count = series->count - 1;                 /* that of the last is not complete */
    size_t most = count / REPEATS < ROUND_MAX ? count / REPEATS : ROUND_MAX;
    mark_possible(series, most, is_possible);
    for (size_t distance = 1; distance <= most; distance++)
        if (is_possible[distance] && speed_others_repeat(others, count, distance, OTHERS_PERCENT))
            return distance;
    return 0;
}

/* Which of a marker's operations is an iteration's last: most others lie behind it. */
static size_t last_of_round(const struct gap_series *series, uint64_t round)
{
    double most = -1;
    size_t last = 0;
    for (size_t first = 0; first < round; first++) {
        double others = 0;
        for (size_t i = first; i + 1 < series->count; i += round)
            others += series->median_others[i + 1];
        if (others <= most)
            continue;
        most = others;
        last = first;
    }
    return last;
}

/* Whether what lies between the rank's own operations repeats itself so. */
static bool repeats_at(struct speed_rank *rank, uint64_t round)
{
    size_t held = held_of(rank);
    double *others = held > round + 1 ? others_of(rank) : NULL;
    bool repeats = others && speed_others_repeat(others + 1, held - 1, round, OWN_OTHERS_PERCENT);
    free(others);
    return repeats;
}

/* Communicators of other sizes may have more operations in an iteration, or fewer. How many a rank
 * holds shows that only as far as no rank is ahead. */
static void number_all(struct speed *speed, const struct gap_series *series, uint64_t round)
{
    double iterations = fmax((double)series->count / (double)round, 1);
    size_t last = last_of_round(series, round);
    for (uint32_t r = 0; r < speed->count; r++) {
        struct speed_rank *rank = speed->rank[r];
        if (!speed_rank_holds(rank) || !rank->operations)
            continue;
        double here = (double)held_of(rank) / iterations;
        if (rank->marker && repeats_at(rank, round))
            here = (double)round;
        speed_number_held(rank, here > 1.5 ? (uint64_t)(here + 0.5) : 1, last);
    }
}

static bool is_enough(const struct speed *speed, bool *is_last)
{
    bool holds = false;
    for (uint32_t r = 0; r < speed->count; r++) {
        if (!speed_rank_holds(speed->rank[r]))
            continue;
        holds = true;
        if (speed->rank[r]->operations < speed->held && !*is_last)
            return false;
        *is_last |= speed->rank[r]->operations >= HELD_MOST;
    }
    return holds;
}

/* 0 also where memory is short, which is noted. */
static uint64_t find_round(struct analyzer *analyzer, bool by_marker, bool is_end,
                           struct gap_series *series)
{
    uint64_t round = 0;
    if (find_gaps(analyzer->slot.speed, series))
        analyzer->failed = true;
    else if (!by_marker || !(round = find_repeating(series)))
        round = find_distance(series, is_end);
    return round;
}

void speed_find_rounds(struct analyzer *analyzer, bool is_end)
{
    struct speed *speed = analyzer->slot.speed;
    struct gap_series series;
    if (!speed->held)
        speed->held = HELD_LEAST;
    if (!is_enough(speed, &is_end))
        return;
    bool by_marker = speed_choose_markers(speed);
    uint64_t round = find_round(analyzer, by_marker, is_end, &series);
    if (by_marker && !round && is_end) {
        free_gaps(&series);
        speed_forget_markers(speed);
        round = find_round(analyzer, false, true, &series);
    }
    speed->rounds_are_alike = round == 1 && !has_others(speed);
    if ((round || is_end) && !analyzer->failed)
        number_all(speed, &series, round ? round : ROUND_NOT_FOUND);
    speed->held *= 2;
    free_gaps(&series);
}
