/* slowdowns.c: a list of what slows the job down, and what all who add to it need. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/slowdown.h"

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double speed_median(double *value, size_t count)
{
    if (!count)
        return 0;
    qsort(value, count, sizeof *value, compare_doubles);
    return value[(count - 1) / 2];
}

double speed_median_of(const double *value, size_t count)
{
    double *copy = malloc((count + 1) * sizeof *copy), median = 0;
    if (copy && count) {
        memcpy(copy, value, count * sizeof *copy);
        median = speed_median(copy, count);
    }
    free(copy);
    return median;
}

double speed_middle(const double *value, size_t count)
{
    double *copy = malloc((count + 1) * sizeof *copy), sum = 0;
    size_t first = count / 4, end = count - first;
    if (copy && count) {
        memcpy(copy, value, count * sizeof *copy);
        speed_median(copy, count);
        for (size_t i = first; i < end; i++)
            sum += copy[i];
    }
    free(copy);
    return count ? sum / (double)(end - first) : 0;
}

void slowdowns_add(struct slowdowns *slowdowns, const struct slowdown *slowdown)
{
    struct slowdown *grown =
        array_room(slowdowns->slowdown, sizeof *grown, slowdowns->count, &slowdowns->capacity, 4);
    const struct speed_rank **rank = malloc((slowdown->ranks + 1) * sizeof *rank);
    if (grown)
        slowdowns->slowdown = grown;
    if (!grown || !rank) {
        slowdowns->failed = true;
        free(rank);
        return;
    }
    if (slowdown->ranks)
        memcpy(rank, slowdown->rank, slowdown->ranks * sizeof *rank);
    grown[slowdowns->count] = *slowdown;
    grown[slowdowns->count++].rank = rank;
}

void slowdowns_add_all(struct slowdowns *slowdowns, const struct speed *speed,
                       struct slowdown *slowdown)
{
    const struct speed_rank **rank = malloc((speed->count + 1) * sizeof *rank);
    if (!rank) {
        slowdowns->failed = true;
        return;
    }
    for (uint32_t i = 0; i < speed->count; i++)
        rank[i] = speed->rank[i];
    slowdown->rank = rank;
    slowdown->ranks = speed->count;
    slowdown->is_all = true;
    slowdowns_add(slowdowns, slowdown);
    free(rank);
}

bool slowdowns_have_rank(const struct slowdowns *slowdowns, const struct speed_rank *rank)
{
    for (uint32_t i = 0; i < slowdowns->count; i++) {
        const struct slowdown *slowdown = &slowdowns->slowdown[i];
        for (uint32_t k = 0; k < slowdown->ranks && !slowdown->is_all; k++)
            if (slowdown->kind != SLOW_LINK && slowdown->rank[k] == rank)
                return true;
    }
    return false;
}

static int first_rank(const struct slowdown *slowdown)
{
    const struct member *member = slowdown->ranks ? slowdown->rank[0]->member : NULL;
    return member ? member_shown_rank(member) : -1;
}

static int costlier_first(const void *a, const void *b)
{
    const struct slowdown *left = a, *right = b;
    double more = slowdown_cost(left), less = slowdown_cost(right);
    int by_cost = compare_doubles(&less, &more);
    return by_cost ? by_cost : first_rank(left) - first_rank(right);
}

void slowdowns_sort(struct slowdowns *slowdowns)
{
    if (slowdowns->count)
        qsort(slowdowns->slowdown, slowdowns->count, sizeof *slowdowns->slowdown, costlier_first);
}

void slowdowns_free(struct slowdowns *slowdowns)
{
    for (uint32_t i = 0; slowdowns && i < slowdowns->count; i++)
        free(slowdowns->slowdown[i].rank);
    if (slowdowns)
        free(slowdowns->slowdown);
    free(slowdowns);
}

const char *slowdown_kernel(const struct analyzer *analyzer, const struct slowdown *slowdown,
                            int index)
{
    for (int p = 0; slowdown->kernel[index] && p < analyzer->processes; p++) {
        const char *text = analyzer->process[p]
                               ? process_string(analyzer->process[p], slowdown->kernel[index])
                               : NULL;
        if (text && *text)
            return text;
    }
    return NULL;
}

double speed_chance(size_t count, size_t hits, double each)
{
    double sum = 0;
    for (size_t k = hits; k <= count; k++)
        sum += exp(lgamma((double)count + 1) - lgamma((double)k + 1) -
                   lgamma((double)(count - k) + 1) + (double)k * log(each) +
                   (double)(count - k) * log1p(-each));
    return fmin(sum, 1);
}
