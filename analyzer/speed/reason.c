/* reason.c: why a rank's own time is longer than its peers': a late host, a slow device or more
 * work. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/speed/reason.h"

enum {
    WORK_PERCENT = 2,     /* more kernels, operations or bytes than its peers: more work */
    IDLE_PERCENT = 40,    /* of what is lost: nothing is queued during it, so the host is late */
    COMPUTE_PERCENT = 80, /* of what is lost: kernels take that much longer */
    SEEN_PERCENT = 50,    /* the same on a host that may be busy */
    LAUNCHED_PERCENT = 50 /* of what is lost: more threads explain it, on a host that may be busy */
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
    enum { USUAL = 6 };
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
        value[3 * iterations + count] = iteration.share[SHARE_TRANSFER];
        value[4 * iterations + count] = iteration.launches;
        value[5 * iterations + count++] = iteration.threads;
        means.kernels += iteration.kernels;
        means.operations += iteration.operations;
        means.bytes += iteration.bytes;
    }
    if (count) {
        means.idle = usual_share(judged, value, count);
        means.queued = usual_share(judged, value + iterations, count);
        means.compute = usual_share(judged, value + 2 * iterations, count);
        means.transfer = usual_share(judged, value + 3 * iterations, count);
        means.launches = usual_share(judged, value + 4 * iterations, count);
        means.threads = usual_share(judged, value + 5 * iterations, count);
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

/* Of each of these, how many times as many as its peers the rank has, if it has more. */
static void find_more(const struct means *own, const struct means *peers, double more[MORE_KINDS])
{
    double have[MORE_KINDS][2] = {
        [MORE_KERNELS] = {own->kernels, peers->kernels},
        [MORE_OPERATIONS] = {own->operations, peers->operations},
        [MORE_BYTES] = {own->bytes, peers->bytes},
    };
    if (!(own->kernels > 0) && peers->threads > 0) { /* not timed, but counted; many small */
        have[MORE_THREADS][0] = own->threads;        /* kernels are no more work than few large */
        have[MORE_THREADS][1] = peers->threads;
    }
    for (int i = 0; i < MORE_KINDS; i++)
        if (slowdown_is_more(have[i][0], have[i][1]))
            more[i] = have[i][1] > 0 ? have[i][0] / have[i][1] : HUGE_VAL;
}

/* The share of the loss that would be gone, had the rank as little work as its peers. */
static double share_due_to(double work, const struct means *own, const struct slowdown *slowdown)
{
    double mine = own->idle + own->queued + own->compute;
    return work > 1 && slowdown->lost > 0 ? mine * (1 - 1 / work) / slowdown->lost : 0;
}

/* Kernels that are not timed: more threads in them count if they explain a good part of what is
 * lost. Returns what they do. */
static double weigh_launches(const struct means *own, struct slowdown *slowdown)
{
    double work = slowdown->more[MORE_THREADS], due = share_due_to(work, own, slowdown);
    if (100 * due < LAUNCHED_PERCENT) {
        slowdown->more[MORE_THREADS] = 0;
        return 0;
    }
    slowdown->work = work;
    return due;
}

static bool exceeds_peers(const struct slowdown *slowdown)
{
    for (int i = 0; i < MORE_KINDS; i++)
        if (slowdown->more[i] > 0)
            return true;
    return false;
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
    bool is_due = 2 * share_due_to(compared.work, own, slowdown) >= 1;
    if (is_due)
        *slowdown = compared;
    return is_due;
}

/* Names and times of kernels come once a second, after the first iterations that they are of. */
static bool awaits_kernels(const struct judged *judged, enum slowdown_kind kind, bool is_timed,
                           const struct slowdown *slowdown)
{
    return kind == SLOW_DEVICE && is_timed && judged->recorded && !(slowdown->ratio > 0);
}

/* By where its time goes: to a late host, to a device that works longer, or SLOW_KINDS. */
static enum slowdown_kind kind_by_times(const struct judged *judged, const struct speed_rank *rank,
                                        const struct means *own, const struct means *peers,
                                        const struct slowdown *slowdown)
{
    double idle = own->idle - peers->idle, busy = own->compute - peers->compute,
           queued = own->queued - peers->queued, transfer = own->transfer - peers->transfer;
    bool is_timed = own->kernels > 0, is_seen = is_timed || rank->knows_issue;
    double on_device = is_timed ? busy : queued;
    bool is_unseen = is_timed && queued > busy && queued > idle;
    if (is_timed && judged->recorded && on_device > idle)
        is_unseen |= 100 * busy < SEEN_PERCENT * slowdown->lost;
    is_unseen |= !is_seen && queued > idle; /* then it is an estimate: followed.c */
    if (is_unseen || (!is_timed && transfer > idle && transfer > on_device))
        return SLOW_KINDS;
    bool is_idle = is_seen && 100 * idle > IDLE_PERCENT * slowdown->lost;
    bool is_device = (on_device > idle && !is_idle) || (!is_seen && exceeds_peers(slowdown));
    return is_device ? SLOW_DEVICE : SLOW_HOST;
}

/* Kernels that are not timed, as many as on the peers, and with as many threads. */
static bool launches_as_much(const struct means *own, const struct means *peers)
{
    return own->launches > 0 && !(own->kernels > 0) &&
           !slowdown_is_more(peers->launches, own->launches) &&
           !slowdown_is_more(own->launches, peers->launches) &&
           !slowdown_is_more(peers->threads, own->threads) &&
           !slowdown_is_more(own->threads, peers->threads);
}

enum slowdown_kind slowdown_find_reason(const struct judged *judged, uint32_t index,
                                        struct slowdown *slowdown)
{
    const struct speed_rank *rank = judged->speed->rank[index];
    struct means own = slowdown_means_of(judged, rank), peers = {0};
    uint32_t count;
    const struct speed_rank **peer = peers_of(judged, index, &count);
    if (!peer || peer_means(judged, peer, count, &peers)) {
        free(peer);
        return SLOW_KINDS;
    }
    find_more(&own, &peers, slowdown->more);
    double due = weigh_launches(&own, slowdown);
    bool more = exceeds_peers(slowdown), is_timed = own.kernels > 0;
    enum slowdown_kind kind = kind_by_times(judged, rank, &own, &peers, slowdown);
    slowdown->is_timed = is_timed && !judged->coarse;
    slowdown->kind_is_guess = !is_timed && !rank->knows_issue && !more;
    slowdown->is_as_much = launches_as_much(&own, &peers);
    bool is_open = kind == SLOW_HOST || kind == SLOW_KINDS;
    if (kind == SLOW_DEVICE &&
        (more || (is_timed && !slowdown_compare_kernels(judged, index, peer, count, slowdown))))
        kind = SLOW_WORK;
    if (is_open && is_timed && is_due_to_work(judged, index, peer, count, &own, slowdown))
        kind = SLOW_WORK;
    if (is_open && due > 0)
        kind = SLOW_WORK;
    free(peer);
    return awaits_kernels(judged, kind, is_timed, slowdown) ? SLOW_KINDS : kind;
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
