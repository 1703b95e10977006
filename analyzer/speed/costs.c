/* costs.c: what slow ranks of a pipeline cost the job, which is what the others wait for them.
 *
 * That is less than what a rank loses, as far as its stage would wait anyway, and more, if all
 * stages of a replica lose, one after the other. It shows in the collectives of a stage, where the
 * replicas meet; in messages a replica waits for itself. */
#include <math.h>
#include <stdlib.h>

#include "analyzer/speed/slowdown.h"

/* By rank. */
struct meetings {
    double *wait;  /* in collectives of an iteration, on average */
    bool *is_slow; /* by pipeline: it has a slow rank */
    double *value; /* room for as many */
};

static void meetings_free(struct meetings *meetings)
{
    free(meetings->wait);
    free(meetings->is_slow);
    free(meetings->value);
}

static double mean_wait(const struct judged *judged, const struct speed_rank *rank)
{
    struct speed_iteration iteration;
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t n = judged->first; n < judged->end; n++)
        if (judged_iteration(rank, n, &iteration)) {
            sum += iteration.met;
            count++;
        }
    return count ? sum / (double)count : 0;
}

static int find_meetings(const struct judged *judged, const struct slowdowns *found, uint32_t from,
                         struct meetings *meetings)
{
    uint32_t ranks = judged->speed->count;
    *meetings = (struct meetings){calloc(ranks + 1, sizeof(double)),
                                  calloc(ranks + 1, sizeof(bool)),
                                  calloc(ranks + 1, sizeof(double))};
    if (!meetings->wait || !meetings->is_slow || !meetings->value)
        return -1;
    for (uint32_t r = 0; r < ranks; r++)
        meetings->wait[r] = mean_wait(judged, judged->speed->rank[r]);
    for (uint32_t i = from; i < found->count; i++)
        for (uint32_t r = 0; r < found->slowdown[i].ranks; r++)
            meetings->is_slow[judged->pipeline_of[found->slowdown[i].rank[r]->index]] = true;
    return 0;
}

/* How much longer the others of a communicator wait than the rank, by the median of those whose
 * pipelines have no slow rank. INFINITY: it is no member, or there are none. */
static double waited_in(const struct judged *judged, const struct comm *comm, uint32_t rank,
                        const struct meetings *meetings)
{
    bool is_member = false;
    size_t count = 0;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct speed_rank *other = speed_rank_of(judged->speed, comm->member[i]);
        is_member |= other && other->index == rank;
        if (other && !meetings->is_slow[judged->pipeline_of[other->index]])
            meetings->value[count++] = meetings->wait[other->index];
    }
    if (!is_member || !count)
        return INFINITY;
    return speed_median(meetings->value, count) - meetings->wait[rank];
}

/* The least that one of its communicators shows: members of a stage wait for it in any case.
 * INFINITY: none shows it. */
static double cost_of_rank(const struct judged *judged, uint32_t rank,
                           const struct meetings *meetings)
{
    double least = INFINITY;
    for (const struct speed_comm *comm = judged->speed->comms; comm; comm = comm->hh.next)
        if (comm->collectives && comm->comm->members <= judged->speed->count)
            least = fmin(least, waited_in(judged, comm->comm, rank, meetings));
    return least;
}

static void note_cost_of_rank(const struct judged *judged, uint32_t rank,
                              const struct meetings *meetings, struct slowdown *slowdown)
{
    if (judged_pipeline(judged, rank)->ranks == 1)
        return;
    double cost = cost_of_rank(judged, rank, meetings);
    if (!isfinite(cost))
        return;
    slowdown->knows_cost = true;
    slowdown->cost = fmax(slowdown->cost, cost);
}

void judge_costs(const struct judged *judged, struct slowdowns *found, uint32_t from)
{
    struct meetings meetings;
    if (from == found->count)
        return;
    if (find_meetings(judged, found, from, &meetings)) {
        found->failed = true;
        meetings_free(&meetings);
        return;
    }
    for (uint32_t i = from; i < found->count; i++) {
        struct slowdown *slowdown = &found->slowdown[i];
        for (uint32_t r = 0; r < slowdown->ranks; r++)
            note_cost_of_rank(judged, slowdown->rank[r]->index, &meetings, slowdown);
    }
    meetings_free(&meetings);
}
