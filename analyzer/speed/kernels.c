/* kernels.c: sums of what the GPUs ran, by name. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/array.h"
#include "analyzer/model/process.h"
#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"

enum {
    ALIKE_PERCENT = 50, /* of the mean slowdown, by which that of a kernel may differ from it */
    UNEVEN_PERCENT = 20 /* of what is lost: the kernels that differ by more hardly matter */
};

void speed_kernel_add(struct analyzer *analyzer, struct speed_rank *rank, uint64_t name,
                      uint64_t count, uint64_t total_ns)
{
    struct speed_kernel *kernel;
    HASH_FIND(hh, rank->kernels, &name, sizeof name, kernel);
    if (!kernel && (kernel = calloc(1, sizeof *kernel))) {
        kernel->name = name;
        TABLE_ADD(rank->kernels, name, kernel);
        if (!TABLE_ADDED(kernel)) {
            free(kernel);
            kernel = NULL;
        }
    }
    if (!kernel) {
        analyzer->failed = true;
        return;
    }
    kernel->count += count;
    kernel->seconds += (double)total_ns / 1e9;
}

void speed_kernels(struct analyzer *analyzer, const struct process *process,
                   const struct record *record)
{
    struct speed_rank *rank = speed_rank_get(analyzer, process, record->device);
    if (rank)
        speed_kernel_add(analyzer, rank, record->kernels.name, record->kernels.count,
                         record->kernels.total_ns);
}

void speed_kernels_free(struct speed_rank *rank)
{
    struct speed_kernel *kernel, *next;
    HASH_ITER(hh, rank->kernels, kernel, next) {
        HASH_DEL(rank->kernels, kernel);
        free(kernel);
    }
}

/* A kernel's mean duration on the median peer; 0 if none has it. */
static double peer_kernel(const struct speed_rank *const *peer, uint32_t count, uint64_t name,
                          double *value)
{
    size_t have = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct speed_kernel *kernel;
        HASH_FIND(hh, peer[i]->kernels, &name, sizeof name, kernel);
        if (kernel)
            value[have++] = kernel->seconds / (double)kernel->count;
    }
    return speed_median(value, have);
}

struct kernel_loss {
    uint64_t name;
    double seconds, expected;
};

static int compare_losses(const void *a, const void *b)
{
    const struct kernel_loss *left = a, *right = b;
    double l = left->seconds - left->expected, r = right->seconds - right->expected;
    return (l < r) - (l > r);
}

/* The kernel is about as many times as long as all are, together. */
static bool is_slow_alike(const struct kernel_loss *loss, double ratio)
{
    double more = loss->seconds / loss->expected - 1, mean = ratio - 1;
    return 100 * fabs(more - mean) <= ALIKE_PERCENT * mean;
}

bool slowdown_compare_kernels(const struct judged *judged, uint32_t index,
                              const struct speed_rank *const *peer, uint32_t count,
                              struct slowdown *slowdown)
{
    const struct speed_rank *rank = judged->speed->rank[index];
    uint32_t names = HASH_COUNT(rank->kernels), losses = 0;
    struct kernel_loss *loss = malloc((names + 1) * sizeof *loss);
    double *value = malloc((count + 1) * sizeof *value), seconds = 0, expected = 0;
    double uneven = 0;
    struct speed_kernel *kernel;
    for (kernel = rank->kernels; kernel && loss && value; kernel = kernel->hh.next) {
        double mean = peer_kernel(peer, count, kernel->name, value);
        if (!mean)
            continue;
        loss[losses] =
            (struct kernel_loss){kernel->name, kernel->seconds, mean * (double)kernel->count};
        seconds += loss[losses].seconds;
        expected += loss[losses++].expected;
    }
    slowdown->ratio = expected > 0 ? seconds / expected : 0;
    for (uint32_t i = 0; i < losses; i++)
        if (!is_slow_alike(&loss[i], slowdown->ratio))
            uneven += fabs(loss[i].seconds - loss[i].expected);
    if (losses)
        qsort(loss, losses, sizeof *loss, compare_losses);
    for (uint32_t i = 0; i < losses && i < SLOW_KERNELS; i++) {
        slowdown->kernel[i] = loss[i].name;
        slowdown->kernel_ratio[i] = loss[i].seconds / loss[i].expected;
    }
    free(loss);
    free(value);
    return 100 * uneven <= UNEVEN_PERCENT * (seconds - expected);
}

/* A job's kernels by name, while they are summed up. */
struct kernel_totals {
    uint64_t name;
    double seconds; /* on all ranks */
    uint64_t count;
    double least, most; /* mean durations of ranks */
    const struct speed_rank *slowest;
    UT_hash_handle hh;
};

static int compare_totals(const struct kernel_totals *a, const struct kernel_totals *b)
{
    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

static int add_totals(struct kernel_totals **totals, const struct speed_rank *rank,
                      const struct speed_kernel *kernel)
{
    struct kernel_totals *sum;
    double mean = kernel->count ? kernel->seconds / (double)kernel->count : 0;
    TABLE_FIND(*totals, &kernel->name, sum);
    if (!sum) {
        if (!(sum = calloc(1, sizeof *sum)))
            return -1;
        sum->name = kernel->name;
        sum->least = mean;
        TABLE_ADD(*totals, name, sum);
        if (!TABLE_ADDED(sum)) {
            free(sum);
            return -1;
        }
    }
    sum->seconds += kernel->seconds;
    sum->count += kernel->count;
    sum->least = mean < sum->least ? mean : sum->least;
    if (!sum->slowest || mean > sum->most) {
        sum->most = mean;
        sum->slowest = rank;
    }
    return 0;
}

static void visit_totals(struct analyzer *analyzer, const struct kernel_totals *sum, double all,
                         void (*visit)(void *context, const struct speed_kernel_view *view),
                         void *context)
{
    const struct slowdown named = {.kernel = {sum->name}};
    const char *name = slowdown_kernel(analyzer, &named, 0);
    struct speed_kernel_view view = {.name = name ? name : "",
                                     .count = sum->count,
                                     .least_s = sum->least,
                                     .most_s = sum->most,
                                     .slowest_rank = -1};
    if (all > 0)
        view.share = sum->seconds / all;
    if (sum->count)
        view.mean_s = sum->seconds / (double)sum->count;
    if (sum->slowest->member)
        view.slowest_rank = member_shown_rank(sum->slowest->member);
    visit(context, &view);
}

int analyzer_visit_speed_kernels(struct analyzer *analyzer,
                                 void (*visit)(void *context, const struct speed_kernel_view *view),
                                 void *context)
{
    struct speed *speed = analyzer->speed;
    struct kernel_totals *totals = NULL, *sum, *next;
    double all = 0;
    int result = 0;
    for (uint32_t i = 0; speed && i < speed->count; i++) {
        const struct speed_kernel *kernel = speed->rank[i]->kernels;
        for (; kernel && !result; kernel = kernel->hh.next) {
            result = add_totals(&totals, speed->rank[i], kernel);
            all += kernel->seconds;
        }
    }
    HASH_SORT(totals, compare_totals);
    HASH_ITER(hh, totals, sum, next) {
        if (!result)
            visit_totals(analyzer, sum, all, visit, context);
        HASH_DEL(totals, sum);
        free(sum);
    }
    if (result)
        errno = ENOMEM;
    return result;
}
