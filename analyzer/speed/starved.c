/* starved.c: what is slow because threads had to wait for a processor. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/reason.h"
#include "analyzer/speed/run_delays.h"

enum {
    PARTS = 16,           /* of what is judged, in which waiting is compared */
    STARVED_PERCENT = 50, /* of what is lost */
    CLEAR_TIMES = 4,      /* what its peers wait, in so many of these parts */
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
    return (struct run_delay_sum){sum.waited / count, sum.throttled / count};
}

static bool is_named(const struct slowdown *slowdown, const struct speed_rank *rank)
{
    for (uint32_t i = 0; i < slowdown->ranks; i++)
        if (slowdown->rank[i]->key.process == rank->key.process)
            return true;
    return false;
}

/* The medians of peers in other processes: those of its own process share its threads. */
static struct run_delay_sum waiting_of_peers(const struct judged *judged,
                                             const struct slowdown *slowdown, uint64_t first,
                                             uint64_t end)
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
        waited[count] = sum.waited;
        throttled[count++] = sum.throttled;
    }
    struct run_delay_sum medians = {speed_median(waited, count), speed_median(throttled, count)};
    free(waited);
    free(throttled);
    return medians;
}

/* How much more they wait than before: what one of them does, all members of an operation wait. */
static double most_waiting(const struct judged *judged, const struct slowdown *slowdown,
                           uint64_t first, uint64_t end)
{
    double most = 0;
    for (uint32_t i = 0; i < slowdown->ranks; i++) {
        const struct speed_rank *rank = slowdown->rank[i];
        double before = slowdown->since > judged->begin && judged->begin
                            ? waiting_of(judged, rank, judged->begin, slowdown->since).waited
                            : 0;
        most = fmax(most, waiting_of(judged, rank, first, end).waited - before);
    }
    return most;
}

static bool loses_much(const struct slowdown *slowdown)
{
    return slowdown->kind < SLOW_LINK && slowdown->lost >= clear_lost_s &&
           100 * slowdown->lost >= CLEAR_PERCENT * slowdown->length;
}

/* A rank and its peers, part by part. The waiting is that of most parts or the mean, as what is
 * lost may be either. Clear is what is not just a busy host, for all of its ranks or for a while.
 */
static void judge_starved_rank(const struct judged *judged, struct slowdown *slowdown,
                               uint64_t first, uint64_t end)
{
    uint64_t iterations = end - first, parts = iterations < PARTS ? iterations : PARTS, clear = 0;
    double more[PARTS], mean = 0, seconds = (double)iterations * slowdown->length;
    struct run_delay_sum own = {0}, peers = {0};
    for (uint64_t i = 0; i < parts; i++) {
        uint64_t begins = first + i * iterations / parts,
                 ends = first + (i + 1) * iterations / parts;
        struct run_delay_sum its = waiting_of(judged, slowdown->rank[0], begins, ends),
                             theirs = waiting_of_peers(judged, slowdown, begins, ends);
        more[i] = its.waited - theirs.waited;
        mean += more[i] / (double)parts;
        clear += its.waited > 0 && its.waited >= CLEAR_TIMES * theirs.waited;
        own.waited += its.waited;
        own.throttled += its.throttled;
        peers.throttled += theirs.throttled;
    }
    slowdown->starved = fmax(mean, speed_median(more, parts));
    slowdown->is_throttled = own.throttled > 0 &&
                             100 * own.throttled >= THROTTLED_PERCENT * own.waited &&
                             own.throttled >= CLEAR_TIMES * peers.throttled;
    bool is_alone = 100 * clear >= CLEAR_PARTS_PERCENT * parts && seconds >= clear_s;
    bool is_limited = slowdown->is_throttled && seconds >= limited_s;
    slowdown->starves_clearly = loses_much(slowdown) && iterations >= CLEAR_ITERATIONS &&
                                (is_alone || is_limited);
}

void judge_starved(const struct judged *judged, struct slowdown *slowdown)
{
    bool is_rank = slowdown->comm && slowdown->kind != SLOW_LINK && !slowdown->is_all;
    uint64_t first = slowdown->since > slowdown->first ? slowdown->since : slowdown->first,
             end = slowdown->last + 1;
    if (slowdown->until && slowdown->until < end)
        end = slowdown->until;
    if (!judged->speed->run_delays || !slowdown->ranks || end <= first)
        return;
    if (is_rank)
        judge_starved_rank(judged, slowdown, first, end);
    else
        slowdown->starved = most_waiting(judged, slowdown, first, end);
    slowdown->is_starved = slowdown->starved > 0 &&
                           100 * slowdown->starved >= STARVED_PERCENT * slowdown->lost;
    if (slowdown->is_starved && slowdown->starves_clearly && slowdown->kind == SLOW_DEVICE)
        slowdown->kind = SLOW_HOST;
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
        judge_starved(judged, &slowdown);
        if (slowdown.is_starved && slowdown.starves_clearly)
            slowdowns_add_rank(judged, found, added, &slowdown);
    }
}
