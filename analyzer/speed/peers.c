/* peers.c: how much longer than its peers' a rank's own time is.
 *
 * Peers do the same work: the members of a communicator with collectives, unless it spans the
 * stages of a pipeline (stages.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/model/process.h"
#include "analyzer/speed/stages.h"

enum { IDLE_LEAST_PERCENT = 5 }; /* of an iteration */

/* What of an iteration is neither waiting nor an exposed transfer, which all members share. Kernels
 * show which are exposed; or no rank has operations of others, so peers have the same transfers at
 * the same time, and what is exposed of these differs by what each does meanwhile. All ranks are
 * measured alike. */
static float work_of(const struct judged *judged, const struct speed_iteration *iteration)
{
    float own = speed_own(iteration);
    return judged->exposes ? own - iteration->share[SHARE_TRANSFER] : own;
}

/* What a rank waits in a usual iteration, for others or for a transfer: where transfers are a
 * chain, the last of them are late because of who was late for the first. */
static double usual_wait(const struct judged *judged, uint32_t rank)
{
    double *wait = malloc((judged->end - judged->first + 1) * sizeof *wait), usual;
    size_t count = 0;
    for (uint64_t n = judged->first; wait && n < judged->end; n++) {
        struct speed_iteration iteration;
        if (judged_iteration(judged->speed->rank[rank], n, &iteration))
            wait[count++] = iteration.length - work_of(judged, &iteration);
    }
    usual = wait ? speed_middle(wait, count) : 0;
    free(wait);
    return usual;
}

/* Of each rank. NULL: memory is short; the caller frees. */
static double *usual_waits(const struct judged *judged)
{
    double *wait = malloc((judged->speed->count + 1) * sizeof *wait);
    for (uint32_t r = 0; wait && r < judged->speed->count; r++)
        wait[r] = usual_wait(judged, r);
    return wait;
}

/* What the other members wait longer than a rank that exceeds its peers, at the median of them. */
static int judge_waited(const struct judged *judged, const struct comm *comm, const uint32_t *index,
                        const double *wait)
{
    uint64_t iterations = judged->end - judged->first;
    double *sorted = malloc((comm->members + 1) * sizeof *sorted);
    size_t count = 0;
    if (!sorted)
        return -1;
    for (uint32_t i = 0; i < comm->members; i++)
        if (index[i] != UINT32_MAX)
            sorted[count++] = wait[index[i]];
    speed_median(sorted, count);
    for (uint32_t i = 0; i < comm->members && count > 1; i++) {
        uint32_t rank = index[i];
        bool exceeds = rank != UINT32_MAX && judged->among[rank] == comm &&
                       100 * speed_middle(judged_excess(judged, rank), iterations) >=
                           judged->length;
        if (!exceeds)
            continue;
        size_t middle = (count - 2) / 2; /* of the others, one further on if the rank precedes it */
        middle += wait[rank] <= sorted[middle];
        judged->waited[rank] = fmax(sorted[middle] - wait[rank], 0);
    }
    free(sorted);
    return 0;
}

/* Own time beyond the median member's, into excess[rank] by iteration; 0 where it is not known. */
static int compare_members(const struct judged *judged, const struct comm *comm,
                           const uint32_t *index, double *excess)
{
    uint64_t iterations = judged->end - judged->first;
    double *own = malloc((comm->members ? comm->members : 1) * sizeof *own);
    if (!own)
        return -1;
    for (uint64_t n = 0; n < iterations; n++) {
        size_t count = 0;
        for (uint32_t i = 0; i < comm->members; i++) {
            struct speed_iteration iteration;
            bool known = index[i] != UINT32_MAX && judged_iteration(judged->speed->rank[index[i]],
                                                                    judged->first + n, &iteration);
            excess[i * iterations + n] = known ? work_of(judged, &iteration) : NAN;
            if (known)
                own[count++] = work_of(judged, &iteration);
        }
        double median = speed_median(own, count);
        for (uint32_t i = 0; i < comm->members; i++) {
            double *at = &excess[i * iterations + n];
            *at = isnan(*at) ? 0 : *at - median;
        }
    }
    free(own);
    return 0;
}

/* A rank is compared with the peers that it exceeds most. Where another member of any of its
 * communicators is behind still more, it is that one that holds it up. */
static int judge_among(struct judged *judged, const struct comm *comm, const uint32_t *index)
{
    uint64_t iterations = judged->end - judged->first;
    double *excess = malloc((comm->members * iterations + 1) * sizeof *excess);
    if (!excess || compare_members(judged, comm, index, excess)) {
        free(excess);
        return -1;
    }
    double most = 0;
    for (uint32_t i = 0; i < comm->members; i++) {
        double mean = speed_middle(excess + i * iterations, iterations);
        most = mean > most ? mean : most;
    }
    for (uint32_t i = 0; i < comm->members; i++) {
        if (index[i] == UINT32_MAX)
            continue;
        double less = most - speed_middle(excess + i * iterations, iterations);
        if (judged->behind[index[i]] < less)
            judged->behind[index[i]] = less;
        double *known = judged_excess(judged, index[i]), *here = excess + i * iterations;
        if (judged->among[index[i]] &&
            speed_middle(known, iterations) >= speed_middle(here, iterations))
            continue;
        memcpy(known, here, iterations * sizeof *known);
        judged->among[index[i]] = comm;
    }
    free(excess);
    return 0;
}

/* In a pipeline the rank that is behind its peers most holds up the others. A batch passes all of
 * its stages, one after the other, so what each of these loses at least adds up. */
static void judge_pipelines(struct judged *judged)
{
    uint32_t count = judged->speed->count;
    uint64_t iterations = judged->end - judged->first;
    for (uint32_t r = 0; r < count; r++) {
        double mean = speed_middle(judged_excess(judged, r), iterations);
        struct speed_pipeline *of = &judged->pipeline[judged->pipeline_of[r]];
        of->most = fmax(of->most, mean);
        of->least = of->ranks++ ? fmin(of->least, mean) : mean;
    }
    for (uint32_t r = 0; r < count; r++) {
        double less = judged_pipeline(judged, r)->most -
                      speed_middle(judged_excess(judged, r), iterations);
        judged->behind[r] = fmax(judged->behind[r], less);
    }
}

bool judged_shows_host(const struct judged *judged)
{
    for (uint32_t r = 0; r < judged->speed->count; r++)
        if (!judged->speed->rank[r]->kernels && !judged->speed->rank[r]->knows_issue)
            return false;
    return !judged->coarse;
}

/* How much longer than the rank others wait. The stages of a pipeline wait for each other in turn,
 * also without a cause: where its kernels show that the rank is idle, it is how long they wait. */
static double waited_longer(const struct judged *judged, uint32_t rank, double usual, double waits)
{
    bool is_sure = judged_pipeline(judged, rank)->ranks > 1 && judged->speed->rank[rank]->kernels;
    return is_sure ? usual : usual - waits;
}

/* Stages may differ in their work, but no GPU should have nothing to do but wait for its host.
 * Where a rank has no peers, or all of them are on one slow host, its idle time is compared with
 * that of the lower quarter of all ranks, and its waiting with that of the upper quarter: late
 * hosts may drive half of them. */
static int judge_idle(struct judged *judged, const double *wait)
{
    uint64_t iterations = judged->end - judged->first;
    uint32_t count = judged->speed->count;
    double *idle = calloc(count * iterations + 1, sizeof *idle);
    double *value = malloc((count + 1) * sizeof *value);
    for (uint64_t n = 0; idle && value && n < iterations; n++) {
        struct speed_iteration iteration;
        for (uint32_t r = 0; r < count; r++) {
            judged_iteration(judged->speed->rank[r], judged->first + n, &iteration);
            value[r] = idle[r * iterations + n] = speed_idle_surely(&iteration);
        }
        speed_median(value, count);
        for (uint32_t r = 0; r < count; r++)
            idle[r * iterations + n] -= value[count / 4];
    }
    double usual = 0;
    if (idle && value && count) {
        memcpy(value, wait, count * sizeof *value);
        speed_median(value, count);
        usual = value[3 * count / 4];
    }
    for (uint32_t r = 0; idle && value && r < count; r++) {
        double mean = speed_middle(idle + r * iterations, iterations);
        double waited = waited_longer(judged, r, usual, wait[r]);
        if (100 * mean < IDLE_LEAST_PERCENT * judged->length || waited <= 0 ||
            100 * speed_middle(judged_excess(judged, r), iterations) >=
                fmin(100 * mean / 2, IDLE_LEAST_PERCENT * judged->length))
            continue;
        memcpy(judged_excess(judged, r), idle + r * iterations, iterations * sizeof *idle);
        judged->among[r] = judged->speed->rank[r]->member->comm;
        judged->waited[r] = waited;
        judged->behind[r] = 0;
        judged->idles[r] = true;
    }
    int result = idle && value ? 0 : -1;
    free(idle);
    free(value);
    return result;
}

int judge_peers(struct judged *judged)
{
    uint64_t iterations = judged->end - judged->first;
    struct stages stages = {0};
    judged->excess = calloc(judged->speed->count * iterations + 1, sizeof *judged->excess);
    judged->waited = calloc(judged->speed->count + 1, sizeof *judged->waited);
    judged->behind = calloc(judged->speed->count + 1, sizeof *judged->behind);
    judged->idles = calloc(judged->speed->count + 1, sizeof *judged->idles);
    judged->among = calloc(judged->speed->count + 1, sizeof *judged->among);
    judged->pipeline = calloc(judged->speed->count + 1, sizeof *judged->pipeline);
    judged->pipeline_of = calloc(judged->speed->count + 1, sizeof *judged->pipeline_of);
    int result = !judged->excess || !judged->waited || !judged->behind || !judged->among ||
                 !judged->idles || !judged->pipeline || !judged->pipeline_of ||
                 stages_find(judged, &stages);
    for (uint32_t c = 0; c < stages.comms && !result; c++)
        if (stages.comm[c]->collectives && !stages.spans[c] && stages.comm[c]->comm->members > 1)
            result = judge_among(judged, stages.comm[c]->comm, stages.rank[c]);
    if (!result)
        judge_pipelines(judged);
    double *wait = result ? NULL : usual_waits(judged);
    result = result || !wait;
    for (uint32_t c = 0; c < stages.comms && !result; c++)
        result = judge_waited(judged, stages.comm[c]->comm, stages.rank[c], wait);
    if (!result && judged_shows_host(judged))
        result = judge_idle(judged, wait);
    free(wait);
    stages_free(&stages);
    return result ? -1 : 0;
}
