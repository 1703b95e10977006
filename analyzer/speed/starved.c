/* starved.c: what is slow because threads had to wait for a processor. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/reason.h"
#include "analyzer/speed/run_delays.h"

enum {
    PARTS = 16,            /* of what is judged, in which waiting is compared */
    STARVED_PERCENT = 50,  /* of what is lost */
    REPORTED_PERCENT = 70, /* of what is lost, where it has been reported: it would come and go */
    CLEAR_TIMES = 4,       /* times what its peers wait, in CLEAR_PARTS_PERCENT of these parts */
    CLEAR_PARTS_PERCENT = 75,
    CLEAR_PERCENT = 10, /* of an iteration is lost */
    CLEAR_ITERATIONS = 30,
    WAITED_PERCENT = 25,   /* of what is lost its peers wait */
    THROTTLED_PERCENT = 25 /* of the waiting: it is the CPU limit */
};
static const double clear_lost_s = 0.002, /* of an iteration */
    limited_s = 5,
                    clear_s =
                        20; /* so long; without a CPU limit others may do the same for a while */

/* Of an iteration in [first, end), on average. */
static struct run_delay_sum waiting_of(const struct judged *judged, const struct speed_rank *rank,
                                       uint64_t first, uint64_t end)
{
    struct speed_iteration iteration;
    uint64_t begin_ns = 0, end_ns = 0;
    for (uint64_t n = first; n < end; n++) {
        if (!judged_iteration(rank, n, &iteration))
            continue;
        begin_ns = begin_ns ? begin_ns : iteration.end_ns - (uint64_t)(1e9 * iteration.length);
        end_ns = iteration.end_ns;
    }
    struct run_delay_sum sum = speed_run_delays(judged->speed, rank->key.process, begin_ns, end_ns);
    double count = end > first ? (double)(end - first) : 1;
    return (struct run_delay_sum){sum.waited / count, sum.with_child / count,
                                  sum.throttled / count};
}

static bool is_named(const struct slowdown *slowdown, const struct speed_rank *rank)
{
    for (uint32_t i = 0; i < slowdown->ranks; i++)
        if (slowdown->rank[i]->key.process == rank->key.process)
            return true;
    return false;
}

/* A worker of the data loader holds its rank up only where nothing is queued. */
static double counted_of(const struct slowdown *slowdown, const struct run_delay_sum *sum)
{
    return slowdown->is_idle ? sum->with_child : sum->waited;
}

struct waiting {
    double waited, throttled;
};

/* The medians of peers in other processes: those of its own process share its threads. */
static struct waiting waiting_of_peers(const struct judged *judged, const struct slowdown *slowdown,
                                       uint64_t first, uint64_t end)
{
    const struct comm *comm = slowdown->comm;
    uint32_t members = comm ? comm->members : 0, count = 0;
    double *waited = malloc((members + 1) * sizeof *waited),
           *throttled = malloc((members + 1) * sizeof *throttled);
    for (uint32_t i = 0; waited && throttled && i < members; i++) {
        const struct speed_rank *peer = speed_rank_of(judged->speed, comm->member[i]);
        if (!peer || is_named(slowdown, peer))
            continue;
        struct run_delay_sum sum = waiting_of(judged, peer, first, end);
        waited[count] = counted_of(slowdown, &sum);
        throttled[count++] = sum.throttled;
    }
    struct waiting medians = {speed_median(waited, count), speed_median(throttled, count)};
    free(waited);
    free(throttled);
    return medians;
}

/* How much more they wait than before: of a link the median member, of two the one that waits more;
 * else what one rank does all wait for. */
static double waiting_of_all(const struct judged *judged, const struct slowdown *slowdown,
                             uint64_t first, uint64_t end)
{
    double *more = calloc(slowdown->ranks, sizeof *more);
    for (uint32_t i = 0; more && i < slowdown->ranks; i++) {
        const struct speed_rank *rank = slowdown->rank[i];
        double before = slowdown->since > judged->begin && judged->begin
                            ? waiting_of(judged, rank, judged->begin, slowdown->since).waited
                            : 0;
        more[i] = waiting_of(judged, rank, first, end).waited - before;
    }
    if (!more)
        return 0;
    speed_median(more, slowdown->ranks); /* sorts them */
    double counted = more[slowdown->kind == SLOW_LINK ? slowdown->ranks / 2 : slowdown->ranks - 1];
    free(more);
    return counted;
}

static bool loses_much(const struct slowdown *slowdown)
{
    return slowdown->kind < SLOW_LINK && slowdown->lost >= clear_lost_s &&
           100 * slowdown->lost >= CLEAR_PERCENT * slowdown->length;
}

/* Iterations in parts, each with what the peers of the slow ranks wait. */
struct parts {
    uint64_t first, iterations, count;
    struct waiting peers[PARTS];
};
static uint64_t part_begins(const struct parts *parts, uint64_t part)
{
    return parts->first + part * parts->iterations / parts->count;
}

static struct parts parts_of(const struct judged *judged, const struct slowdown *slowdown,
                             uint64_t first, uint64_t end)
{
    struct parts parts = {.first = first, .iterations = end - first};
    parts.count = parts.iterations < PARTS ? parts.iterations : PARTS;
    for (uint64_t i = 0; i < parts.count; i++)
        parts.peers[i] =
            waiting_of_peers(judged, slowdown, part_begins(&parts, i), part_begins(&parts, i + 1));
    return parts;
}

struct starved {
    double waited; /* beyond its peers */
    bool is_throttled, is_clear;
};

/* A rank and its peers, part by part. The waiting is that of most parts or the mean, as what is
 * lost may be either. Clear is what is not just a busy host, for all of its ranks or for a while.
 */
static struct starved judge_starved_rank(const struct judged *judged,
                                         const struct slowdown *slowdown,
                                         const struct speed_rank *rank, const struct parts *parts)
{
    double more[PARTS], mean = 0, waited = 0, throttled = 0, peers_throttled = 0,
                        seconds = (double)parts->iterations * slowdown->length;
    uint64_t clear = 0;
    for (uint64_t i = 0; i < parts->count; i++) {
        struct run_delay_sum its =
            waiting_of(judged, rank, part_begins(parts, i), part_begins(parts, i + 1));
        double counted = counted_of(slowdown, &its);
        more[i] = counted - parts->peers[i].waited;
        mean += more[i] / (double)parts->count;
        clear += counted > 0 && counted >= CLEAR_TIMES * parts->peers[i].waited;
        waited += counted;
        throttled += its.throttled;
        peers_throttled += parts->peers[i].throttled;
    }
    bool is_throttled = throttled > 0 && 100 * throttled >= THROTTLED_PERCENT * waited &&
                        throttled >= CLEAR_TIMES * peers_throttled;
    bool is_alone = 100 * clear >= CLEAR_PARTS_PERCENT * parts->count && seconds >= clear_s;
    return (struct starved){fmax(mean, speed_median(more, parts->count)), is_throttled,
                            is_alone || (is_throttled && seconds >= limited_s)};
}

/* Of several ranks it has to be true of most. */
static void judge_starved_ranks(const struct judged *judged, struct slowdown *slowdown,
                                uint64_t first, uint64_t end)
{
    struct parts parts = parts_of(judged, slowdown, first, end);
    double *waited = calloc(slowdown->ranks, sizeof *waited);
    uint32_t throttled = 0, clear = 0;
    for (uint32_t i = 0; waited && i < slowdown->ranks; i++) {
        struct starved starved = judge_starved_rank(judged, slowdown, slowdown->rank[i], &parts);
        waited[i] = starved.waited;
        throttled += starved.is_throttled;
        clear += starved.is_clear;
    }
    slowdown->starving.seconds = waited ? speed_median(waited, slowdown->ranks) : 0;
    slowdown->starving.is_throttled = 2 * throttled > slowdown->ranks;
    slowdown->starving.is_clear = loses_much(slowdown) && parts.iterations >= CLEAR_ITERATIONS &&
                                  2 * clear > slowdown->ranks;
    free(waited);
}

/* Neither kernels that are timed nor what comes again and again is due to other programs. */
static bool may_starve(const struct slowdown *slowdown)
{
    bool is_in_kernels = slowdown->kind == SLOW_DEVICE || slowdown->kind == SLOW_WORK;
    bool is_regular = slowdown->kind == SLOW_PAUSE && !slowdown->period_varies;
    return !(is_in_kernels && slowdown->is_timed) && !is_regular && slowdown->ranks;
}

static bool is_reported_before(const struct judged *judged, const struct slowdown *slowdown)
{
    const struct slowdowns *found = judged->speed->found;
    for (uint32_t i = 0; found && i < found->count; i++) {
        const struct slowdown *before = &found->slowdown[i];
        if (before->is_reported && !before->starving.is_cause && before->kind == slowdown->kind &&
            before->comm == slowdown->comm && before->ranks && before->rank[0] == slowdown->rank[0])
            return true;
    }
    return false;
}

void judge_starved(const struct judged *judged, struct slowdown *slowdown)
{
    bool is_rank = slowdown->comm && slowdown->kind != SLOW_LINK && !slowdown->is_all;
    uint64_t first = slowdown->since > slowdown->first ? slowdown->since : slowdown->first,
             end = slowdown->last + 1;
    if (slowdown->until && slowdown->until < end)
        end = slowdown->until;
    if (!judged->speed->run_delays || !may_starve(slowdown) || end <= first)
        return;
    if (is_rank)
        judge_starved_ranks(judged, slowdown, first, end);
    else
        slowdown->starving.seconds = waiting_of_all(judged, slowdown, first, end);
    double percent = is_reported_before(judged, slowdown) ? REPORTED_PERCENT : STARVED_PERCENT;
    slowdown->starving.is_cause = slowdown->starving.seconds > 0 &&
                                  100 * slowdown->starving.seconds >= percent * slowdown->lost;
}

static bool has_slow_rank(const struct slowdowns *found, uint32_t from,
                          const struct speed_rank *rank)
{
    for (uint32_t i = from; i < found->count; i++)
        for (uint32_t k = 0; k < found->slowdown[i].ranks; k++)
            if (found->slowdown[i].rank[k] == rank)
                return true;
    return false;
}

static double mean_loss(const struct judged *judged, uint32_t rank)
{
    double sum = 0;
    for (uint64_t n = judged->first; n < judged->end; n++)
        sum += judged_excess(judged, rank)[n - judged->first];
    return judged->end > judged->first ? sum / (double)(judged->end - judged->first) : 0;
}

static double mean_idle(const struct judged *judged, const struct speed_rank *rank)
{
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t n = judged->first; n < judged->end; n++) {
        struct speed_iteration iteration;
        if (!judged_iteration(rank, n, &iteration))
            continue;
        sum += speed_idle(&iteration);
        count++;
    }
    return count ? sum / (double)count : 0;
}

/* Whether most of what it loses is idle time: it has that much more of it than most peers. */
static bool is_idle_longer(const struct judged *judged, const struct slowdown *slowdown)
{
    const struct comm *comm = slowdown->comm;
    uint32_t members = comm ? comm->members : 0, count = 0;
    double *idle = calloc(members + 1, sizeof *idle);
    for (uint32_t i = 0; idle && i < members; i++) {
        const struct speed_rank *peer = speed_rank_of(judged->speed, comm->member[i]);
        if (peer && peer != slowdown->rank[0])
            idle[count++] = mean_idle(judged, peer);
    }
    double usual = speed_median(idle, count);
    free(idle);
    return count && 2 * (mean_idle(judged, slowdown->rank[0]) - usual) >= slowdown->lost;
}

void judge_starving(const struct judged *judged, struct slowdowns *found, uint32_t from)
{
    uint32_t added = found->count;
    for (uint32_t r = 0; judged->speed->run_delays && r < judged->speed->count; r++) {
        const struct speed_rank *rank = judged->speed->rank[r];
        struct slowdown slowdown = slowdown_of_rank(judged, r, &rank, mean_loss(judged, r));
        slowdown.kind = SLOW_HOST;
        slowdown.before = judged->before ? judged->before[r] : 0;
        if (2 * slowdown.before < slowdown.lost)
            slowdown.since = judged->since;
        if (!loses_much(&slowdown) || has_slow_rank(found, from, rank) ||
            100 * judged->waited[r] < WAITED_PERCENT * slowdown.lost)
            continue;
        slowdown.is_idle = is_idle_longer(judged, &slowdown);
        judge_starved(judged, &slowdown);
        if (slowdown.starving.is_cause && slowdown.starving.is_clear)
            slowdowns_add_rank(judged, found, added, &slowdown);
    }
}
