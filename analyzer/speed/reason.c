/* reason.c: why a rank's own time is longer than its peers': a late host, a slow device or more
 * work. */
#include <stdlib.h>

#include "analyzer/speed/reason.h"

enum {
    WORK_PERCENT = 2,     /* more kernels, operations or bytes than its peers: more work */
    IDLE_PERCENT = 40,    /* of what is lost: nothing is queued for so long, the host is late */
    COMPUTE_PERCENT = 80, /* likewise: kernels take that much longer */
    SEEN_PERCENT = 50     /* likewise, on a host that may be busy */
};

/* Pauses do not move it; but what is judged may be that which is seldom. */
static double usual_share(const struct judged *judged, double *value, size_t count)
{
    double sum = 0;
    if (!judged->is_seldom)
        return speed_middle(value, count);
    for (size_t i = 0; i < count; i++)
        sum += value[i];
    return count ? sum / (double)count : 0;
}

struct means slowdown_means_of(const struct judged *judged, const struct speed_rank *rank)
{
    enum { USUAL = 4 };
    size_t iterations = judged->end - judged->first, count = 0;
    double *value = malloc((USUAL * iterations + 1) * sizeof *value);
    struct means means = {0};
    for (uint64_t n = judged->first; value && n < judged->end; n++) {
        struct speed_iteration iteration;
        if (!judged_iteration(rank, n, &iteration))
            continue;
        value[count] = speed_idle(&iteration);
        value[iterations + count] = iteration.share[SHARE_QUEUED];
        value[2 * iterations + count] = iteration.share[SHARE_COMPUTE];
        value[3 * iterations + count++] = iteration.share[SHARE_TRANSFER];
        means.kernels += iteration.kernels;
        means.operations += iteration.operations;
        means.bytes += iteration.bytes;
    }
    if (count) {
        means.idle = usual_share(judged, value, count);
        means.queued = usual_share(judged, value + iterations, count);
        means.compute = usual_share(judged, value + 2 * iterations, count);
        means.transfer = usual_share(judged, value + 3 * iterations, count);
        means.kernels /= (double)count;
        means.operations /= (double)count;
        means.bytes /= (double)count;
    }
    free(value);
    return means;
}

/* The peers of a rank, without itself; the caller frees. */
static const struct speed_rank **peers_of(const struct judged *judged, uint32_t rank,
                                          uint32_t *count)
{
    const struct comm *comm = judged->among[rank];
    const struct speed_rank **peer = malloc((comm->members + 1) * sizeof *peer);
    *count = 0;
    for (uint32_t i = 0; peer && i < comm->members; i++) {
        const struct speed_rank *other = speed_rank_of(judged->speed, comm->member[i]);
        if (other && other->index != rank)
            peer[(*count)++] = other;
    }
    return peer;
}

/* The median of the peers, field by field. */
static int peer_means(const struct judged *judged, const struct speed_rank *const *peer,
                      uint32_t count, struct means *medians)
{
    enum { FIELDS_OF_MEANS = sizeof(struct means) / sizeof(double) };
    double *value = malloc((size_t)(count + 1) * FIELDS_OF_MEANS * sizeof *value);
    if (!value)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        struct means means = slowdown_means_of(judged, peer[i]);
        for (size_t field = 0; field < FIELDS_OF_MEANS; field++)
            value[field * count + i] = ((const double *)&means)[field];
    }
    for (size_t field = 0; field < FIELDS_OF_MEANS; field++)
        ((double *)medians)[field] = speed_median(value + field * count, count);
    free(value);
    return 0;
}

bool slowdown_is_more(double value, double peers)
{
    return value > peers * (1 + WORK_PERCENT / 100.0);
}

/* Its kernels have more work, and as much less time as that is more would spare half of what is
 * lost: a larger batch takes its host longer, too, and leaves more gaps between kernels. Fills in
 * which kernels these are. */
static bool is_due_to_work(const struct judged *judged, uint32_t index,
                           const struct speed_rank *const *peer, uint32_t count,
                           const struct means *own, struct slowdown *slowdown)
{
    struct slowdown compared = *slowdown;
    slowdown_compare_kernels(judged, index, peer, count, &compared);
    double mine = own->idle + own->queued + own->compute;
    bool is_due = compared.work > 1 && 2 * mine * (1 - 1 / compared.work) >= slowdown->lost;
    if (is_due)
        *slowdown = compared;
    return is_due;
}

enum slowdown_kind slowdown_find_reason(const struct judged *judged, uint32_t index,
                                        struct slowdown *slowdown)
{
    const struct speed_rank *rank = judged->speed->rank[index];
    struct means own = slowdown_means_of(judged, rank), peers = {0};
    uint32_t count;
    const struct speed_rank **peer = peers_of(judged, index, &count);
    enum slowdown_kind kind = SLOW_HOST;
    if (!peer || peer_means(judged, peer, count, &peers)) {
        free(peer);
        return SLOW_KINDS;
    }
    bool more = slowdown_is_more(own.bytes, peers.bytes) ||
                slowdown_is_more(own.operations, peers.operations) ||
                slowdown_is_more(own.kernels, peers.kernels);
    double idle = own.idle - peers.idle, busy = own.compute - peers.compute,
           queued = own.queued - peers.queued, transfer = own.transfer - peers.transfer;
    bool is_seen = own.kernels > 0 || rank->knows_issue;
    double on_device = own.kernels > 0 ? busy : queued;
    bool is_unseen = own.kernels > 0 && queued > busy && queued > idle;
    if (own.kernels > 0 && judged->recorded && on_device > idle)
        is_unseen |= 100 * busy < SEEN_PERCENT * slowdown->lost;
    is_unseen |= !is_seen && queued > idle; /* then it is an estimate: followed.c */
    bool is_transfer = !(own.kernels > 0) && transfer > idle && transfer > on_device;
    if (is_unseen || is_transfer)
        kind = SLOW_KINDS;
    else if ((on_device > idle && !(is_seen && 100 * idle > IDLE_PERCENT * slowdown->lost)) ||
             (!is_seen && more))
        kind = more ? SLOW_WORK : SLOW_DEVICE;
    slowdown->kind_is_guess = !is_seen && !more;
    if (kind == SLOW_DEVICE && own.kernels > 0 &&
        !slowdown_compare_kernels(judged, index, peer, count, slowdown))
        kind = SLOW_WORK;
    if (own.kernels > 0 && (kind == SLOW_HOST || kind == SLOW_KINDS) &&
        is_due_to_work(judged, index, peer, count, &own, slowdown))
        kind = SLOW_WORK;
    if (kind == SLOW_WORK && peers.kernels > 0 && slowdown_is_more(own.kernels, peers.kernels))
        slowdown->launches = own.kernels / peers.kernels;
    free(peer);
    return kind;
}

bool slowdown_computes_longer(const struct judged *judged, uint32_t index, double lost)
{
    uint32_t count;
    struct means own = slowdown_means_of(judged, judged->speed->rank[index]), peers = {0};
    if (!(own.kernels > 0 || judged->speed->rank[index]->knows_issue) || !judged->among[index])
        return false;
    const struct speed_rank **peer = peers_of(judged, index, &count);
    bool is_longer =
        peer && !peer_means(judged, peer, count, &peers) &&
        100 * (own.kernels > 0 ? own.compute - peers.compute : own.queued - peers.queued) >=
            COMPUTE_PERCENT * lost;
    free(peer);
    return is_longer;
}
