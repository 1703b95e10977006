/* links.c: which transfers take longer than those of sister communicators.
 *
 * Sisters have as many ranks and the same operations of the same size: the groups of a DP x TP x PP
 * grid. Of several slow ones the ranks, or hosts, that all of them have in common are named. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/slowdown.h"

enum {
    LONGER_PERCENT = 25,     /* than the median sister's */
    ONE_SISTER_PERCENT = 50, /* than the only sister, where there is one */
    BECAME_PERCENT = 10,     /* than before, by most of what iterations are longer since then */
    FAST_PART = 4,           /* a quarter of sisters, that are fast while most are slow by a host */
    FEW_PERCENT = 150,       /* over the root of how many there are: few differ by chance, */
    FEW_TIMES = 4,       /* but by three standard errors of a quartile at most: this multiple of its
                            distance from what 5 % of them stay below */
    CLEARLY_TIMES = 2,   /* as long nearly all are, of a link that noise does not explain */
    BESIDE_PERCENT = 50, /* longer than before, where all else takes longer as well */
    BESIDE_SHARE = 5,    /* of an iteration, in the same case */
    BEFORE_NEEDED = 30,  /* iterations of a recorded job: while it begins, its host may be idle, */
    BEFORE_TIMES = 5,    /* or it has to be that many times as slow */
    SLOW_BYTES = 64 << 10, /* operations of such a size show what a link carries */
    SLOW_SHARE = 10        /* of an iteration, that a link without sisters takes */
};
/* Bytes a second: gigabit Ethernet, which no link between GPUs is slower than on purpose. */
static const double slow_rate = 125e6, right_rate = 1.25e9; /* and ten times that */
/* A transfer that takes less may be as long because of the host. */
static const double slow_floor_s = 0.002, slow_floor_coarse_s = 0.004;

/* A class of operations, over all communicators. */
struct link_class {
    struct speed_class_key key;
    double *mean; /* of each communicator that has it */
    uint32_t count, capacity;
    double usual; /* of those that are not slow */
    UT_hash_handle hh;
};

/* A communicator whose transfers are slow. */
struct slow_comm {
    const struct speed_comm *comm;
    double lost, ratio;
    double rate;    /* bytes a second that it carries at most, if that is what shows it; else 0 */
    uint64_t since; /* it was not slow before this iteration; 0: it was */
    bool is_steady; /* nearly all of its transfers are slow */
};

struct links {
    struct judged *judged;
    struct link_class *classes;
    struct slow_comm *slow;
    uint32_t count;
    bool most_are_slow; /* of some class, by one host if by anything */
    bool failed;
};

static void add_link_mean(struct links *links, const struct speed_class *class)
{
    struct link_class *known;
    TABLE_FIND(links->classes, &class->key, known);
    if (!known && (known = calloc(1, sizeof *known))) {
        known->key = class->key;
        TABLE_ADD(links->classes, key, known);
        if (!TABLE_ADDED(known)) {
            free(known);
            known = NULL;
        }
    }
    if (known && known->count == known->capacity) {
        uint32_t capacity = known->capacity ? 2 * known->capacity : 4;
        double *grown = realloc(known->mean, capacity * sizeof *grown);
        if (grown) {
            known->mean = grown;
            known->capacity = capacity;
        }
    }
    if (!known || known->count == known->capacity)
        links->failed = true;
    else
        known->mean[known->count++] = speed_class_quartile(class);
}

/* The median; but of links between hosts one host may slow most: with a stage of a pipeline before
 * it and one behind it, two of three. Then a quarter of them is clearly faster, and alike. */
static double usual_quartile(struct links *links, struct link_class *class)
{
    double median = speed_median(class->mean, class->count);
    double fast = class->mean[class->count / FAST_PART], fastest = class->mean[0];
    bool is_alike = 100 * fast <= (100 + LONGER_PERCENT) * fastest;
    if (class->key.hosts < 2 || class->count < 2 * FAST_PART || !is_alike ||
        median < CLEARLY_TIMES * fast)
        return median;
    links->most_are_slow = true;
    return fast;
}

static void gather_classes(struct links *links)
{
    for (struct speed_comm *comm = links->judged->speed->comms; comm; comm = comm->hh.next)
        for (struct speed_class *class = comm->classes; class; class = class->hh.next)
            add_link_mean(links, class);
    for (struct link_class *class = links->classes; class; class = class->hh.next)
        class->usual = usual_quartile(links, class);
}

/* Transfer time of the members that nothing hides, a mean over iterations and members. */
static double exposed_transfer(const struct judged *judged, const struct comm *comm)
{
    double sum = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct speed_rank *rank = speed_rank_of(judged->speed, comm->member[i]);
        for (uint64_t n = judged->first; rank && n < judged->end; n++) {
            struct speed_iteration iteration;
            if (!judged_iteration(rank, n, &iteration))
                continue;
            sum += iteration.share[SHARE_TRANSFER];
            count++;
        }
    }
    return count ? sum / (double)count : 0;
}

static double mean_transfer(const struct speed_comm *comm, uint64_t first, uint64_t end)
{
    double sum = 0;
    for (uint64_t n = first; n < end; n++)
        sum += speed_comm_transfer(comm, n);
    return end > first ? sum / (double)(end - first) : 0;
}

static double floor_of(const struct judged *judged)
{
    return judged->coarse ? slow_floor_coarse_s : slow_floor_s;
}

/* Nearly all of its transfers take longer than nearly all did before, and, in a recorded job,
 * longer than its host explains. */
static bool became_steadily_slow(const struct judged *judged, const struct speed_comm *comm)
{
    double least = CLEARLY_TIMES * speed_transfer_quantile(comm, judged->begin, judged->since, 90);
    bool is_early = judged->since < judged->begin + BEFORE_NEEDED;
    if (judged->recorded)
        least = fmax(least, floor_of(judged) * (is_early ? BEFORE_TIMES : 1));
    return speed_transfer_quantile(comm, judged->since, judged->end, 10) >= least;
}

/* Its transfers take longer than before, since iterations do, by most of what these are longer, or
 * by much. */
static bool became_slow(const struct judged *judged, const struct speed_comm *comm,
                        struct slow_comm *slow)
{
    double now = mean_transfer(comm, judged->since, judged->end),
           then = mean_transfer(comm, judged->begin, judged->since);
    slow->lost = now - then;
    slow->ratio = then > 0 ? now / then : 0;
    slow->since = judged->since;
    slow->is_steady = became_steadily_slow(judged, comm);
    bool is_most = 2 * slow->lost >= judged->rise && 100 * (slow->ratio - 1) >= BECAME_PERCENT;
    bool is_beside = 100 * (slow->ratio - 1) >= BESIDE_PERCENT &&
                     100 * slow->lost >= BESIDE_SHARE * judged->length;
    return then > 0 && (is_most || is_beside);
}

/* Whether the link became slow from an iteration of its own on: iterations of a busy host do not
 * show it. */
static bool became_slow_by_itself(const struct judged *judged, const struct speed_comm *comm,
                                  struct slow_comm *slow)
{
    uint64_t first = judged->since ? judged->begin : judged->first, count = judged->end - first;
    double *value = judged->until ? NULL : malloc((count + 1) * sizeof *value);
    for (uint64_t n = 0; value && n < count; n++)
        value[n] = speed_comm_transfer(comm, first + n);
    struct judged parts = *judged;
    parts.begin = first;
    parts.since = value ? first + speed_find_step(value, count) : first;
    parts.rise = 0;
    free(value);
    return parts.since > first && became_slow(&parts, comm, slow) && slow->is_steady;
}

static double iterations_of(const struct judged *judged, const struct speed_comm *comm)
{
    const struct speed_rank *first = speed_rank_of(judged->speed, comm->comm->member[0]);
    bool is_known = first && first->closed > first->begun;
    return (double)(is_known ? first->closed - first->begun : judged->end);
}

/* A link without sisters is slow if it carries less than any that is right, in nearly all of its
 * transfers. */
static bool is_slow_in_itself(const struct judged *judged, const struct speed_comm *comm,
                              struct slow_comm *slow)
{
    double floor = floor_of(judged);
    *slow = (struct slow_comm){.comm = comm, .is_steady = true};
    for (struct speed_class *class = comm->classes; class; class = class->hh.next) {
        double least = speed_class_quantile(class, 5), carried;
        speed_moved_bytes(class->key.api, class->key.nranks, (double)class->key.bytes, &carried);
        if (class->key.bytes < SLOW_BYTES || class->count < ITERATIONS_NEEDED || least < floor ||
            carried >= slow_rate * least)
            continue;
        slow->rate = fmax(slow->rate, carried * (double)class->count / class->seconds);
        slow->lost += class->seconds - carried / right_rate * (double)class->count;
    }
    slow->lost =
        fmin(slow->lost / iterations_of(judged, comm), exposed_transfer(judged, comm->comm));
    return slow->rate > 0 && 100 * slow->lost >= SLOW_SHARE * judged->length;
}

/* By how many percent the quartile of so few transfers may differ by chance. */
static double chance_of_few(const struct speed_class *class)
{
    double least = speed_class_quantile(class, 5);
    double spread = least > 0 ? 100 * (speed_class_quartile(class) / least - 1) : FEW_PERCENT;
    return fmin(FEW_TIMES * spread, FEW_PERCENT) / sqrt((double)class->count);
}

/* What its operations take beyond their sisters', in an iteration. */
static void weigh_comm(struct links *links, const struct speed_comm *comm)
{
    const struct judged *judged = links->judged;
    double took = 0, expected = 0, floor = 0, least = LONGER_PERCENT;
    for (struct speed_class *class = comm->classes; class; class = class->hh.next) {
        struct link_class *sisters;
        TABLE_FIND(links->classes, &class->key, sisters);
        if (!sisters || sisters->count < 2)
            continue;
        least = fmax(least, sisters->count == 2 ? ONE_SISTER_PERCENT
                                                : LONGER_PERCENT + chance_of_few(class));
        took += speed_class_quartile(class) * (double)class->count;
        floor += speed_class_quantile(class, 5) * (double)class->count;
        expected += sisters->usual * (double)class->count;
    }
    const struct speed_rank *first = speed_rank_of(judged->speed, comm->comm->member[0]);
    struct slow_comm slow = {.comm = comm,
                             .lost = (took - expected) / iterations_of(judged, comm),
                             .ratio = expected > 0 ? took / expected : 0,
                             .is_steady = expected > 0 && floor >= CLEARLY_TIMES * expected};
    bool knows_hosts = first && *first->key.process->info.host;
    bool is_slow = knows_hosts && 100 * slow.lost >= SHARE_PERCENT * judged->length &&
                   100 * (slow.ratio - 1) >= least;
    if (!is_slow && !(judged->since && became_slow(judged, comm, &slow)) &&
        !became_slow_by_itself(judged, comm, &slow) && !is_slow_in_itself(judged, comm, &slow))
        return;
    double exposed = exposed_transfer(judged, comm->comm);
    if (slow.lost > exposed)
        slow.lost = exposed;
    if (100 * slow.lost >= SHARE_PERCENT * judged->length)
        links->slow[links->count++] = slow;
}

static bool comm_has(const struct judged *judged, const struct comm *comm,
                     const struct speed_rank *rank, bool same_host)
{
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct speed_rank *member = speed_rank_of(judged->speed, comm->member[i]);
        if (!member)
            continue;
        const char *host = member->key.process->info.host;
        if (member == rank || (same_host && *host && !strcmp(host, rank->key.process->info.host)))
            return true;
    }
    return false;
}

/* The ranks of the first communicator that all of the slow ones have, too, or whose hosts they
 * have; all of its ranks where they share none. */
static uint32_t shared_ranks(const struct links *links, const struct speed_rank **rank,
                             bool same_host)
{
    const struct comm *comm = links->slow[0].comm->comm;
    uint32_t count = 0;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct speed_rank *member = speed_rank_of(links->judged->speed, comm->member[i]);
        bool shared = member != NULL;
        for (uint32_t k = 1; k < links->count && shared; k++)
            shared = comm_has(links->judged, links->slow[k].comm->comm, member, same_host);
        if (shared)
            rank[count++] = member;
    }
    return count;
}

/* Whether a slow communicator has the rank, and its host is in all of them. */
static bool is_on_shared_host(const struct links *links, const struct speed_rank *rank)
{
    bool is_in = false, is_shared = true;
    for (uint32_t i = 0; i < links->count && !is_in; i++)
        is_in = comm_has(links->judged, links->slow[i].comm->comm, rank, false);
    for (uint32_t i = 0; i < links->count && is_in && is_shared; i++)
        is_shared = comm_has(links->judged, links->slow[i].comm->comm, rank, true);
    return is_in && is_shared;
}

/* Ranks in slow communicators, of the hosts that all of these share. */
static uint32_t ranks_of_shared_hosts(const struct links *links, const struct speed_rank **rank)
{
    const struct speed *speed = links->judged->speed;
    uint32_t count = 0;
    if (!shared_ranks(links, rank, true))
        return 0;
    for (uint32_t r = 0; r < speed->count; r++)
        if (is_on_shared_host(links, speed->rank[r]))
            rank[count++] = speed->rank[r];
    return count;
}

static void add_link(const struct links *links, const struct slow_comm *slow,
                     const struct speed_rank **rank, uint32_t ranks, struct slowdowns *found)
{
    struct slowdown slowdown = {
        .kind = SLOW_LINK,
        .rank = rank,
        .ranks = ranks,
        .comm = slow->comm->comm,
        .lost = slow->lost,
        .length = links->judged->length,
        .ratio = slow->ratio,
        .rate = slow->rate,
        .is_steady = slow->is_steady,
        .is_coarse = links->judged->coarse,
        .first = links->judged->first,
        .last = links->judged->end - 1,
    };
    if (slow->since) {
        slowdown.since = slow->since;
        slowdown.until = links->judged->until;
    }
    slowdowns_add(found, &slowdown);
}

static int compare_slow(const void *a, const void *b)
{
    const struct slow_comm *left = a, *right = b;
    return (left->lost < right->lost) - (left->lost > right->lost);
}

/* One slowdown for what all share; else one for each communicator. */
static void add_links(struct links *links, struct slowdowns *found)
{
    const struct speed_rank **rank = malloc((links->judged->speed->count + 1) * sizeof *rank);
    if (!rank) {
        found->failed = true;
        return;
    }
    qsort(links->slow, links->count, sizeof *links->slow, compare_slow);
    uint32_t shared = shared_ranks(links, rank, false);
    if (!shared)
        shared = ranks_of_shared_hosts(links, rank);
    if (shared)
        add_link(links, &links->slow[0], rank, shared, found);
    for (uint32_t i = 0; !shared && !links->most_are_slow && i < links->count; i++) {
        const struct comm *comm = links->slow[i].comm->comm;
        uint32_t ranks = 0;
        for (uint32_t k = 0; k < comm->members; k++) {
            const struct speed_rank *member = speed_rank_of(links->judged->speed, comm->member[k]);
            if (member)
                rank[ranks++] = member;
        }
        add_link(links, &links->slow[i], rank, ranks, found);
    }
    free(rank);
}

void judge_links(struct judged *judged, struct slowdowns *found)
{
    struct links links = {.judged = judged};
    links.slow = calloc(HASH_COUNT(judged->speed->comms) + 1, sizeof *links.slow);
    if (links.slow)
        gather_classes(&links);
    for (struct speed_comm *comm = judged->speed->comms; links.slow && comm; comm = comm->hh.next)
        if (comm->comm->members)
            weigh_comm(&links, comm);
    if (links.count)
        add_links(&links, found);
    found->failed |= links.failed || !links.slow;
    struct link_class *class, *next;
    HASH_ITER(hh, links.classes, class, next) {
        HASH_DEL(links.classes, class);
        free(class->mean);
        free(class);
    }
    free(links.slow);
}
