/* rounds.c: the iterations that are judged, where the program names none.
 *
 * Then ranks.c has closed pieces of a few operations each. Iterations repeat themselves, so the
 * median rank's own times repeat after as many pieces as an iteration has: the smallest distance at
 * which they differ about as little as at any. What only some ranks do does not show in the median.
 */
#include <math.h>
#include <stdlib.h>

#include "analyzer/speed/slowdown.h"

enum {
    PIECES_MAX = 64,
    ABOUT_PERCENT = 110 /* of the least difference at any distance */
};

bool judged_iteration(const struct judged *judged, const struct speed_rank *rank, uint64_t number,
                      struct speed_iteration *sum)
{
    *sum = (struct speed_iteration){0};
    for (uint32_t i = 0; i < judged->pieces; i++) {
        const struct speed_iteration *piece =
            speed_iteration_find(rank, number * judged->pieces + i);
        if (!piece)
            return false;
        sum->length += piece->length;
        for (int share = 0; share < SHARES; share++)
            sum->share[share] += piece->share[share];
        sum->operations += piece->operations;
        sum->kernels += piece->kernels;
        sum->bytes += piece->bytes;
    }
    return true;
}

double judged_transfer(const struct judged *judged, const struct speed_comm *comm, uint64_t number)
{
    double sum = 0;
    for (uint32_t i = 0; i < judged->pieces; i++)
        sum += speed_comm_transfer(comm, number * judged->pieces + i);
    return sum;
}

/* The median rank's own time in each piece. */
static double *own_of_pieces(const struct judged *judged)
{
    uint64_t count = judged->end - judged->first;
    double *own = malloc((count + 1) * sizeof *own);
    double *value = malloc((judged->speed->count + 1) * sizeof *value);
    for (uint64_t n = 0; own && value && n < count; n++) {
        size_t known = 0;
        struct speed_iteration piece;
        for (uint32_t r = 0; r < judged->speed->count; r++)
            if (judged_iteration(judged, judged->speed->rank[r], judged->first + n, &piece))
                value[known++] = speed_own(&piece);
        own[n] = speed_median(value, known);
    }
    if (!value) {
        free(own);
        own = NULL;
    }
    free(value);
    return own;
}

/* How much pieces differ from those so many further on, on average. */
static double difference_at(const double *value, uint64_t count, uint64_t distance)
{
    double sum = 0;
    for (uint64_t i = 0; i + distance < count; i++)
        sum += fabs(value[i + distance] - value[i]);
    return sum / (double)(count - distance);
}

static uint32_t find_distance(const double *own, uint64_t count)
{
    double difference[PIECES_MAX + 1], least = INFINITY;
    uint32_t most = PIECES_MAX;
    if (count / ITERATIONS_NEEDED < most)
        most = (uint32_t)(count / ITERATIONS_NEEDED);
    for (uint32_t distance = 1; distance <= most; distance++) {
        difference[distance] = difference_at(own, count, distance);
        least = fmin(least, difference[distance]);
    }
    for (uint32_t distance = 1; distance <= most; distance++)
        if (100 * difference[distance] <= ABOUT_PERCENT * least)
            return distance;
    return 1;
}

int judge_rounds(struct judged *judged)
{
    double *own = own_of_pieces(judged);
    if (!own)
        return -1;
    judged->pieces = find_distance(own, judged->end - judged->first);
    judged->first = (judged->first + judged->pieces - 1) / judged->pieces;
    judged->end /= judged->pieces;
    free(own);
    return 0;
}
