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
    ALIKE_PERCENT = 50,     /* of the mean slowdown, by which that of a kernel may differ from it */
    UNEVEN_PERCENT = 20,    /* of what is lost: the kernels that differ by more hardly matter */
    MORE_PERCENT = 5,       /* threads or bytes of a launch than on the peers: more work */
    EXPLAINED_PERCENT = 25, /* of what is lost */
    KNOWN_PERCENT = 80      /* of the kernels' time: of so much it is known how large they are */
};

void speed_kernel_add(struct analyzer *analyzer, struct speed_rank *rank, uint64_t name,
                      uint64_t count, uint64_t total_ns, uint64_t amount)
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
    kernel->amount += (double)amount;
}

void speed_kernels(struct analyzer *analyzer, const struct process *process,
                   const struct record *record)
{
    struct speed_rank *rank = speed_rank_get(analyzer, process, record->device);
    if (rank)
        speed_kernel_add(analyzer, rank, record->kernels.name, record->kernels.count,
                         record->kernels.total_ns, record->kernels.amount);
}

void speed_kernels_free(struct speed_rank *rank)
{
    struct speed_kernel *kernel, *next;
    HASH_ITER(hh, rank->kernels, kernel, next) {
        HASH_DEL(rank->kernels, kernel);
        free(kernel);
    }
}

static double seconds_of(const struct speed_kernel *kernel)
{
    return kernel->seconds;
}
static double amount_of(const struct speed_kernel *kernel)
{
    return kernel->amount;
}

/* Of a kernel, a mean on the median peer; 0 if none has it. */
static double peer_kernel(const struct speed_rank *const *peer, uint32_t count, uint64_t name,
                          double (*value_of)(const struct speed_kernel *kernel), double *value)
{
    size_t have = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct speed_kernel *kernel;
        HASH_FIND(hh, peer[i]->kernels, &name, sizeof name, kernel);
        if (kernel)
            value[have++] = value_of(kernel) / (double)kernel->count;
    }
    return speed_median(value, have);
}

struct kernel_loss {
    uint64_t name;
    double seconds, expected;
    double amount, expected_amount; /* 0: one of the two is not known */
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

/* What the sizes of launches show. */
enum sizes { SIZES_UNKNOWN, SIZES_EQUAL, SIZES_LARGER };

/* Larger: kernels are launched with so much more work than on the peers that it explains a good
 * part of what they take longer. slowdown->work: how much more those have that are larger. */
static enum sizes compare_sizes(const struct kernel_loss *loss, uint32_t losses,
                                struct slowdown *slowdown)
{
    double lost = 0, explained = 0, amount = 0, expected = 0, known = 0, all = 0;
    for (uint32_t i = 0; i < losses; i++) {
        double here = loss[i].seconds - loss[i].expected;
        double work = loss[i].amount > 0 ? loss[i].amount / loss[i].expected_amount : 1;
        lost += here;
        all += loss[i].expected;
        known += loss[i].amount > 0 ? loss[i].expected : 0;
        if (here <= 0 || 100 * (work - 1) <= MORE_PERCENT)
            continue;
        explained += fmin(here, loss[i].expected * (work - 1));
        amount += loss[i].expected * work;
        expected += loss[i].expected;
    }
    bool is_more = lost > 0 && 100 * explained >= EXPLAINED_PERCENT * lost;
    slowdown->work = is_more ? amount / expected : 0;
    if (is_more)
        return SIZES_LARGER;
    return !expected && 100 * known >= KNOWN_PERCENT * all ? SIZES_EQUAL : SIZES_UNKNOWN;
}

static struct kernel_loss loss_of(const struct speed_kernel *kernel,
                                  const struct speed_rank *const *peer, uint32_t count,
                                  double *value)
{
    double launches = (double)kernel->count;
    double amount = peer_kernel(peer, count, kernel->name, amount_of, value) * launches;
    bool is_known = amount > 0 && kernel->amount > 0;
    struct kernel_loss loss = {
        .name = kernel->name,
        .seconds = kernel->seconds,
        .expected = peer_kernel(peer, count, kernel->name, seconds_of, value) * launches};
    if (is_known) {
        loss.amount = kernel->amount;
        loss.expected_amount = amount;
    }
    return loss;
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
        loss[losses] = loss_of(kernel, peer, count, value);
        if (loss[losses].expected <= 0)
            continue;
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
    enum sizes sizes = compare_sizes(loss, losses, slowdown);
    free(loss);
    free(value);
    return sizes == SIZES_UNKNOWN ? 100 * uneven <= UNEVEN_PERCENT * (seconds - expected)
                                  : sizes == SIZES_EQUAL;
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
