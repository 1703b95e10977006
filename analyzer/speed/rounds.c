/* rounds.c: which operations are an iteration, where the program names none.
 *
 * A rank's rounds are counted by the operations of its widest communicator. Iterations repeat
 * themselves, so the gaps in front of these operations repeat after as many of them as an iteration
 * has: the smallest distance at which they differ about as little as at any. The median rank's gaps
 * are compared, in which what only some ranks do does not show. Sizes have to repeat as well. Where
 * the host's noise is larger than the gaps, or their times are not exact enough, only they are
 * left. Until it is known, operations are held. */
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
    CLEARLY_PERCENT = 50, /* of the mean difference, while more may come */
    SAME_PERCENT = 75,    /* of it at all distances: gaps do not repeat themselves */
    SAME_LEAST = 192,     /* gaps, for that to be believed while more may come */
    SURE_TIMES = 4,       /* its own deviation: a mean of so much is no chance */
    SIZES_PERCENT = 2,    /* of the operations may have another size than the one before */
    ROUND_NOT_FOUND = 2   /* operations, where nothing repeats itself */
};

bool speed_is_counted(const struct speed_rank *rank, const struct speed_operation *operation)
{
    return rank->member && operation->comm->comm == rank->member->comm &&
           operation->peer == rank->round_peer && operation->number <= SPEED_NUMBER_MOST &&
           (operation->peer < 0 || operation->sends == rank->round_sends);
}

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

/* The gaps of the median rank, and the sizes of one rank's operations. */
struct gap_series {
    double *gap[RANKS_COMPARED], *median;
    float *bytes;
    uint32_t ranks;
    size_t count;      /* that all of them have */
    double resolution; /* of their times, in seconds */
};

static void free_gaps(struct gap_series *series)
{
    for (uint32_t i = 0; i < series->ranks; i++)
        free(series->gap[i]);
    free(series->median);
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

static int find_gaps(const struct speed *speed, struct gap_series *series)
{
    uint32_t step = (speed->count + RANKS_COMPARED - 1) / RANKS_COMPARED;
    double value[RANKS_COMPARED];
    series->count = SIZE_MAX;
    for (uint32_t r = 0; r < speed->count; r += step) {
        size_t count;
        if (!speed_rank_holds(speed->rank[r]))
            continue;
        if (!(series->gap[series->ranks++] = gaps_of(speed->rank[r], &count)) ||
            (!series->bytes && !(series->bytes = sizes_held(speed->rank[r]))))
            return -1;
        series->count = count < series->count ? count : series->count;
        const struct process *process = speed->rank[r]->key.process;
        if (process_is_recorded(process) && !exact_is_complete(process))
            series->resolution = reading_s;
    }
    if (!series->ranks)
        series->count = 0;
    if (!(series->median = malloc((series->count + 1) * sizeof *series->median)))
        return -1;
    for (size_t i = 0; i < series->count; i++) {
        for (uint32_t r = 0; r < series->ranks; r++)
            value[r] = series->gap[r][i];
        series->median[i] = speed_median(value, series->ranks);
    }
    return 0;
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

/* How much gaps differ from those so many further on, on average. */
static double difference_at(const double *value, size_t count, size_t distance)
{
    double sum = 0;
    for (size_t i = 0; i + distance < count; i++)
        sum += fabs(value[i + distance] - value[i]);
    return sum / (double)(count - distance);
}

/* How many operations have another size than those so many further on. */
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

/* The smallest possible one at which gaps differ by so much at most. */
static uint64_t first_distance(const bool *is_possible, const double *difference, size_t most,
                               double about)
{
    for (size_t distance = 1; distance <= most; distance++)
        if (is_possible[distance] && difference[distance] <= about)
            return distance;
    return 0;
}

/* Whether gaps differ less from those so many further on than from others, not only by chance. */
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

/* What was held gets its iterations. */
static void number_held(struct speed_rank *rank, uint64_t round)
{
    uint64_t number = 0, first = rank->first_operation;
    bool has_first = false;
    rank->round = round;
    for (uint64_t i = 0; i < rank->operations; i++) {
        struct speed_operation *operation = speed_operation_find(rank, first + i);
        if (speed_is_counted(rank, operation) && operation->number / round >= number) {
            number = operation->number / round;
            for (uint64_t before = 0; !has_first && before < i; before++)
                speed_operation_find(rank, first + before)->iteration = number;
            rank->begun = rank->closed = has_first ? rank->begun : number;
            has_first = true;
        }
        operation->iteration = number;
    }
    rank->newest = rank->counted = number;
    for (uint32_t i = 0; i < rank->spans; i++) {
        const struct speed_operation *next = speed_operation_find(rank, rank->span[i].iteration);
        rank->span[i].iteration = next ? next->iteration : number;
    }
}

/* Communicators of other sizes may have more operations in an iteration, or fewer. */
static void number_all(struct speed *speed, const struct gap_series *series, uint64_t round)
{
    double iterations = fmax((double)series->count / (double)round, 1);
    for (uint32_t r = 0; r < speed->count; r++) {
        struct speed_rank *rank = speed->rank[r];
        if (!speed_rank_holds(rank) || !rank->operations)
            continue;
        double here = (double)held_of(rank) / iterations;
        number_held(rank, here > 1.5 ? (uint64_t)(here + 0.5) : 1);
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

void speed_find_rounds(struct analyzer *analyzer, bool is_end)
{
    struct speed *speed = analyzer->speed;
    struct gap_series series = {0};
    if (!speed->held)
        speed->held = HELD_LEAST;
    if (!is_enough(speed, &is_end))
        return;
    if (find_gaps(speed, &series) ||
        (series.count > ITERATIONS_NEEDED && cut_rare(series.median, series.count))) {
        analyzer->failed = true;
        free_gaps(&series);
        return;
    }
    uint64_t round = find_distance(&series, is_end);
    speed->rounds_are_alike = round == 1 && !has_others(speed);
    if (round || is_end)
        number_all(speed, &series, round ? round : ROUND_NOT_FOUND);
    speed->held *= 2;
    free_gaps(&series);
}
