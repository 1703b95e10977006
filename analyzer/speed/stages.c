/* stages.c: see stages.h.
 *
 * Neighbours that exchange messages (parts of a sequence or a grid, experts) are no pipeline: there
 * at least the first message of an iteration goes one way. */
#include "analyzer/speed/stages.h"

#include <stdlib.h>

#include "analyzer/model/comm.h"

/* The ranks of a communicator's members; UINT32_MAX where one was never seen. */
static uint32_t *member_ranks(const struct judged *judged, const struct comm *comm)
{
    uint32_t *index = malloc((comm->members ? comm->members : 1) * sizeof *index);
    for (uint32_t i = 0; index && i < comm->members; i++) {
        const struct speed_rank *rank = speed_rank_of(judged->speed, comm->member[i]);
        index[i] = rank ? rank->index : UINT32_MAX;
    }
    return index;
}

/* The rank of a member; UINT32_MAX: it was never seen. */
static uint32_t rank_of_member(const struct judged *judged, const struct comm *comm, uint32_t rank)
{
    const struct speed_rank *found = speed_rank_of(judged->speed, comm_member(comm, (int)rank));
    return found ? found->index : UINT32_MAX;
}

static void mark_spanning(const struct judged *judged, struct stages *stages, uint32_t c)
{
    const struct comm *comm = stages->comm[c]->comm;
    for (uint32_t i = 0; i < comm->members; i++)
        if (stages->rank[c][i] != UINT32_MAX)
            stages->seen[stages->rank[c][i]] = c + 1;
    for (uint32_t m = 0; m < stages->comms && !stages->spans[c]; m++) {
        if (!stages->pipes[m])
            continue;
        const struct speed_pair *pair = stages->comm[m]->pairs;
        for (; pair && !stages->spans[c]; pair = pair->hh.next) {
            uint32_t from = rank_of_member(judged, stages->comm[m]->comm, pair->ends >> 32);
            uint32_t to = rank_of_member(judged, stages->comm[m]->comm, (uint32_t)pair->ends);
            stages->spans[c] = from != UINT32_MAX && to != UINT32_MAX &&
                               stages->seen[from] == c + 1 && stages->seen[to] == c + 1;
        }
        uint32_t inside = 0;
        if (!stages->comm[m]->has_many_pairs)
            continue;
        for (uint32_t i = 0; i < stages->comm[m]->comm->members; i++) {
            uint32_t rank = stages->rank[m][i];
            inside += rank != UINT32_MAX && stages->seen[rank] == c + 1;
        }
        stages->spans[c] = inside > 1;
    }
}

void stages_free(struct stages *stages)
{
    for (uint32_t i = 0; stages->rank && i < stages->comms; i++)
        free(stages->rank[i]);
    free(stages->rank);
    free(stages->comm);
    free(stages->pipes);
    free(stages->spans);
    free(stages->seen);
}

static uint32_t pipeline_root(uint32_t *parent, uint32_t rank)
{
    while (parent[rank] != rank)
        rank = parent[rank] = parent[parent[rank]];
    return rank;
}

/* Less than one in each second iteration. */
static bool are_few(const struct speed *speed, uint64_t messages)
{
    return 2 * messages < speed->rank[0]->followed.iteration - speed->rank[0]->begun;
}

/* The first member that was seen; UINT32_MAX none. */
static uint32_t first_of(const struct stages *stages, uint32_t c)
{
    uint32_t i = 0, members = (uint32_t)stages->comm[c]->comm->members;
    while (i < members && stages->rank[c][i] == UINT32_MAX)
        i++;
    return i < members ? stages->rank[c][i] : UINT32_MAX;
}

static void join_members(const struct judged *judged, const struct stages *stages, uint32_t c)
{
    uint32_t *parent = judged->pipeline_of;
    const struct speed_pair *pair = stages->comm[c]->pairs;
    for (; pair; pair = pair->hh.next) {
        uint32_t from = rank_of_member(judged, stages->comm[c]->comm, pair->ends >> 32);
        uint32_t to = rank_of_member(judged, stages->comm[c]->comm, (uint32_t)pair->ends);
        if (from != UINT32_MAX && to != UINT32_MAX)
            parent[pipeline_root(parent, from)] = pipeline_root(parent, to);
    }
    if (!stages->comm[c]->has_many_pairs)
        return;
    uint32_t first = first_of(stages, c);
    for (uint32_t i = 0; i < stages->comm[c]->comm->members; i++)
        if (stages->rank[c][i] != UINT32_MAX)
            parent[pipeline_root(parent, stages->rank[c][i])] = pipeline_root(parent, first);
}

/* Ranks that send each other messages, over any number of others, are a pipeline; unless none of
 * these goes one way. 0 or -1 (ENOMEM). */
static int join_pipelines(const struct judged *judged, struct stages *stages)
{
    uint32_t *of = judged->pipeline_of, ranks = judged->speed->count;
    uint64_t *alone = calloc(ranks + 1, sizeof *alone);
    for (uint32_t r = 0; r < ranks; r++)
        of[r] = r;
    for (uint32_t c = 0; c < stages->comms; c++)
        if (stages->pipes[c])
            join_members(judged, stages, c);
    for (uint32_t r = 0; r < ranks; r++)
        of[r] = pipeline_root(of, r);
    for (uint32_t c = 0; alone && c < stages->comms; c++)
        if (stages->pipes[c])
            alone[of[first_of(stages, c)]] += stages->comm[c]->alone;
    for (uint32_t c = 0; alone && c < stages->comms; c++)
        if (stages->pipes[c])
            stages->pipes[c] = !are_few(judged->speed, alone[of[first_of(stages, c)]]);
    for (uint32_t r = 0; alone && r < ranks; r++)
        if (are_few(judged->speed, alone[of[r]]))
            of[r] = r;
    free(alone);
    return alone ? 0 : -1;
}

int stages_find(const struct judged *judged, struct stages *stages)
{
    uint32_t count = HASH_COUNT(judged->speed->comms);
    stages->rank = calloc(count + 1, sizeof *stages->rank);
    stages->comm = calloc(count + 1, sizeof *stages->comm);
    stages->pipes = calloc(count + 1, sizeof *stages->pipes);
    stages->spans = calloc(count + 1, sizeof *stages->spans);
    stages->seen = calloc(judged->speed->count + 1, sizeof *stages->seen);
    if (!stages->rank || !stages->comm || !stages->pipes || !stages->spans || !stages->seen)
        return -1;
    for (struct speed_comm *comm = judged->speed->comms; comm; comm = comm->hh.next) {
        stages->comm[stages->comms] = comm;
        if (!(stages->rank[stages->comms++] = member_ranks(judged, comm->comm)))
            return -1;
    }
    for (uint32_t c = 0; c < stages->comms; c++)
        stages->pipes[c] = stages->comm[c]->messages && first_of(stages, c) != UINT32_MAX &&
                           !are_few(judged->speed, stages->comm[c]->one_way);
    if (join_pipelines(judged, stages))
        return -1;
    for (uint32_t c = 0; c < stages->comms; c++)
        if (stages->comm[c]->collectives)
            mark_spanning(judged, stages, c);
    return 0;
}
