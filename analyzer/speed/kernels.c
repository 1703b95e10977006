/* kernels.c: compares what a rank's GPU ran with what its peers' did. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/speed/ranks.h"
#include "analyzer/speed/slowdown.h"

enum {
    ALIKE_PERCENT = 50,     /* of the mean slowdown: a kernel's is nearer to it than to none */
    CHANCE_PERCENT = 2,     /* of its time, by which it may differ by chance */
    UNEVEN_PERCENT = 2,     /* of the time: the kernels that differ by more hardly matter */
    MORE_PERCENT = 5,       /* threads or bytes of a launch than on the peers: more work */
    EXPLAINED_PERCENT = 25, /* of what is lost */
    HARDLY_PERCENT = 10,    /* of what is lost: one of several sizes of launches is counted more */
    KNOWN_PERCENT = 80      /* of the kernels' time, whose sizes have to be known */
};

static double seconds_of(const struct speed_kernel_sum *sum)
{
    return sum->seconds;
}
static double amount_of(const struct speed_kernel_sum *sum)
{
    return sum->amount;
}

/* Whom a rank is compared with, and in which iterations. */
struct kernel_peers {
    const struct speed_rank *const *peer;
    uint32_t count;
    uint64_t first, end;
    double *value; /* room for one of each */
};

/* Of a kernel, a mean on the median peer; 0 if none has it. */
static double peer_kernel(const struct kernel_peers *peers, uint64_t name,
                          double (*value_of)(const struct speed_kernel_sum *sum))
{
    size_t have = 0;
    for (uint32_t i = 0; i < peers->count; i++) {
        struct speed_kernel *kernel;
        HASH_FIND(hh, peers->peer[i]->kernels, &name, sizeof name, kernel);
        if (!kernel)
            continue;
        struct speed_kernel_sum sum =
            speed_kernel_between(peers->peer[i], kernel, peers->first, peers->end);
        if (sum.count)
            peers->value[have++] = value_of(&sum) / (double)sum.count;
    }
    return speed_median(peers->value, have);
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
    return fabs(more - mean) <= fmax(ALIKE_PERCENT * mean, CHANCE_PERCENT) / 100;
}

/* What the sizes of launches show. */
enum sizes { SIZES_UNKNOWN, SIZES_EQUAL, SIZES_LARGER };

/* Larger: kernels are launched with more work than on the peers, which explains a good part of what
 * they take longer. slowdown->work: how much more those have that are larger. */
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
    bool are_equal = 100 * explained <= HARDLY_PERCENT * lost && 100 * known >= KNOWN_PERCENT * all;
    return are_equal ? SIZES_EQUAL : SIZES_UNKNOWN;
}

static struct kernel_loss loss_of(const struct speed_rank *rank, const struct speed_kernel *kernel,
                                  const struct kernel_peers *peers)
{
    struct speed_kernel_sum sum = speed_kernel_between(rank, kernel, peers->first, peers->end);
    double launches = (double)sum.count;
    double amount = peer_kernel(peers, kernel->name, amount_of) * launches;
    struct kernel_loss loss = {.name = kernel->name,
                               .seconds = sum.seconds,
                               .expected = peer_kernel(peers, kernel->name, seconds_of) * launches};
    if (amount > 0 && sum.amount > 0) {
        loss.amount = sum.amount;
        loss.expected_amount = amount;
    }
    return loss;
}

/* Whether the kernels that make up nearly all of the time are slow by one factor. */
static bool are_slow_alike(const struct kernel_loss *loss, uint32_t losses, double ratio)
{
    double uneven = 0, expected = 0;
    for (uint32_t i = 0; i < losses; i++) {
        expected += loss[i].expected;
        uneven += is_slow_alike(&loss[i], ratio) ? 0 : loss[i].expected;
    }
    return 100 * uneven <= UNEVEN_PERCENT * expected;
}

bool slowdown_compare_kernels(const struct judged *judged, uint32_t index,
                              const struct speed_rank *const *peer, uint32_t count,
                              struct slowdown *slowdown)
{
    const struct speed_rank *rank = judged->speed->rank[index];
    uint32_t names = HASH_COUNT(rank->kernels), losses = 0;
    struct kernel_loss *loss = malloc((names + 1) * sizeof *loss);
    const struct kernel_peers peers = {peer, count, judged->first, judged->end,
                                       malloc((count + 1) * sizeof(double))};
    double seconds = 0, expected = 0;
    struct speed_kernel *kernel;
    for (kernel = rank->kernels; kernel && loss && peers.value; kernel = kernel->hh.next) {
        loss[losses] = loss_of(rank, kernel, &peers);
        if (loss[losses].expected <= 0)
            continue;
        seconds += loss[losses].seconds;
        expected += loss[losses++].expected;
    }
    slowdown->ratio = expected > 0 ? seconds / expected : 0;
    if (losses)
        qsort(loss, losses, sizeof *loss, compare_losses);
    for (uint32_t i = 0; i < losses && i < SLOW_KERNELS; i++) {
        slowdown->kernel[i] = loss[i].name;
        slowdown->kernel_ratio[i] = loss[i].seconds / loss[i].expected;
    }
    enum sizes sizes = compare_sizes(loss, losses, slowdown);
    bool is_alike = are_slow_alike(loss, losses, slowdown->ratio);
    free(loss);
    free(peers.value);
    return sizes == SIZES_UNKNOWN ? is_alike : sizes == SIZES_EQUAL;
}
