/* kernel_view.c: the job's kernels by name, as readers show them. */
#include <errno.h>
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/slowdown.h"

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
    double mean = kernel->all.count ? kernel->all.seconds / (double)kernel->all.count : 0;
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
    sum->seconds += kernel->all.seconds;
    sum->count += kernel->all.count;
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
    struct speed *speed = analyzer->slot.speed;
    struct kernel_totals *totals = NULL, *sum, *next;
    double all = 0;
    int result = 0;
    for (uint32_t i = 0; speed && i < speed->count; i++) {
        const struct speed_kernel *kernel = speed->rank[i]->kernels;
        for (; kernel && !result; kernel = kernel->hh.next) {
            result = add_totals(&totals, speed->rank[i], kernel);
            all += kernel->all.seconds;
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
