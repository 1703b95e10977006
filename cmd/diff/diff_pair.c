/* diff_pair.c: pairs the communicators and ranks of two traces. */
#include "cmd/diff/diff_pair.h"

#include <stdlib.h>

#include "lib/base/array.h"
#include "lib/base/hash.h"

/* What is being paired: for each communicator of both sides who is in it, and whether it has found
 * its other. */
struct pairing {
    struct diff_pairs *pairs;
    const struct diff_side *side[2];
    int rank[2];      /* diff_pair_ranks: only of these; -1 all */
    uint64_t *who[2]; /* hash of the members' ranks; 0 for one that is not to be paired */
    bool *done[2];
    int largest[2]; /* members of the largest communicator */
};

typedef bool pairing_rule(const struct pairing *pairing, int a, int b);

/* The member whose rank is shown as `rank`, -1 if there is none. */
static int diff_member_shown(const struct diff_side *side, const struct diff_comm *comm, int rank)
{
    for (int i = 0; i < comm->ranks; i++)
        if (comm->member[i] >= 0 && side->member[comm->member[i]].shown_rank == rank)
            return comm->member[i];
    return -1;
}

/* Ranks in order, and how many there should be. A rank without a trace is a gap, which the other
 * side may not have. */
static uint64_t members_hash(const struct diff_side *side, const struct diff_comm *comm)
{
    uint64_t hash = hash_word(1, (uint64_t)comm->nranks);
    for (int i = 0; i < comm->ranks; i++)
        hash = hash_word(hash, comm->member[i] < 0
                                   ? UINT64_MAX
                                   : (uint64_t)side->member[comm->member[i]].shown_rank);
    return hash ? hash : 1;
}

static bool same_members(const struct pairing *pairing, int a, int b)
{
    return pairing->who[0][a] == pairing->who[1][b];
}

/* Ranks that both sides have a trace of are the same; at least one. */
static bool known_members_agree(const struct pairing *pairing, int a, int b)
{
    const struct diff_comm *one = &pairing->side[0]->comm[a], *other = &pairing->side[1]->comm[b];
    int ranks = one->ranks < other->ranks ? one->ranks : other->ranks, both = 0;
    if (one->nranks != other->nranks)
        return false;
    for (int i = 0; i < ranks; i++) {
        if (one->member[i] < 0 || other->member[i] < 0)
            continue;
        both++;
        if (pairing->side[0]->member[one->member[i]].shown_rank !=
            pairing->side[1]->member[other->member[i]].shown_rank)
            return false;
    }
    return both > 0;
}

static int ranks_with_trace(const struct diff_comm *comm)
{
    int count = 0;
    for (int i = 0; i < comm->ranks; i++)
        count += comm->member[i] >= 0;
    return count;
}

static bool both_of_all_ranks(const struct pairing *pairing, int a, int b)
{
    return pairing->side[0]->comm[a].nranks == pairing->largest[0] &&
           pairing->side[1]->comm[b].nranks == pairing->largest[1];
}

static bool same_communicator(const struct pairing *pairing, int a, int b)
{
    (void)pairing;
    return a == b;
}

static bool same_size(const struct pairing *pairing, int a, int b)
{
    return pairing->side[0]->comm[a].nranks == pairing->side[1]->comm[b].nranks;
}

static int member_by(const struct pairing *pairing, int which, int comm, int rank, bool by_shown)
{
    const struct diff_comm *of = &pairing->side[which]->comm[comm];
    if (by_shown)
        return diff_member_shown(pairing->side[which], of, rank);
    return rank < of->ranks ? of->member[rank] : -1;
}

/* Which members stand side by side. Between communicators of different size it is the ranks of the
 * same name. */
static int pair_members(const struct pairing *pairing, struct diff_pair *pair)
{
    const struct diff_comm *of[2] = {&pairing->side[0]->comm[pair->comm[0]],
                                     &pairing->side[1]->comm[pair->comm[1]]};
    bool two_ranks = pairing->rank[0] >= 0, by_shown = two_ranks || of[0]->nranks != of[1]->nranks;
    int most = of[0]->ranks > of[1]->ranks ? of[0]->ranks : of[1]->ranks;
    int ranks = two_ranks ? 1 : most;
    for (int which = 0; which < 2; which++) {
        pair->member[which] = malloc(((size_t)ranks + 1) * sizeof(int));
        if (!pair->member[which])
            return -1;
    }
    for (int i = 0; i < ranks; i++) {
        int member[2];
        for (int which = 0; which < 2; which++)
            member[which] = member_by(pairing, which, pair->comm[which],
                                      two_ranks ? pairing->rank[which] : i, by_shown);
        if (member[0] < 0 && member[1] < 0)
            continue;
        if ((member[0] < 0 || member[1] < 0) && of[0]->nranks != of[1]->nranks)
            continue; /* a rank that the smaller job never had */
        pair->member[0][pair->members] = member[0];
        pair->member[1][pair->members++] = member[1];
    }
    return 0;
}

static int add_pair(struct pairing *pairing, int a, int b)
{
    struct diff_pairs *pairs = pairing->pairs;
    if (!ARRAY_ADD(pairs->pair, pairs->pairs))
        return -1;
    pairs->pair[pairs->pairs] = (struct diff_pair){.comm = {a, b}};
    pairing->done[0][a] = pairing->done[1][b] = true;
    return pair_members(pairing, &pairs->pair[pairs->pairs++]);
}

/* Pairs, in order, what the rule allows. */
static int apply_rule(struct pairing *pairing, pairing_rule *rule)
{
    int first = 0; /* all of side 1 before it are taken */
    for (int a = 0; a < pairing->side[0]->comms; a++) {
        if (pairing->done[0][a])
            continue;
        while (first < pairing->side[1]->comms && pairing->done[1][first])
            first++;
        for (int b = first; b < pairing->side[1]->comms && !pairing->done[0][a]; b++)
            if (!pairing->done[1][b] && rule(pairing, a, b) && add_pair(pairing, a, b))
                return -1;
    }
    return 0;
}

static int start_pairing(struct pairing *pairing)
{
    for (int which = 0; which < 2; which++) {
        const struct diff_side *side = pairing->side[which];
        size_t comms = (size_t)side->comms + 1;
        pairing->who[which] = calloc(comms, sizeof(uint64_t));
        pairing->done[which] = calloc(comms, sizeof(bool));
        if (!pairing->who[which] || !pairing->done[which])
            return -1;
        for (int i = 0; i < side->comms; i++) {
            const struct diff_comm *comm = &side->comm[i];
            pairing->largest[which] =
                comm->nranks > pairing->largest[which] ? comm->nranks : pairing->largest[which];
            pairing->who[which][i] = members_hash(side, comm);
            bool wanted = pairing->rank[which] < 0
                              ? ranks_with_trace(comm) > 0
                              : diff_member_shown(side, comm, pairing->rank[which]) >= 0;
            pairing->done[which][i] = !wanted;
        }
    }
    return 0;
}

static int list_extras(struct pairing *pairing)
{
    struct diff_pairs *pairs = pairing->pairs;
    for (int which = 0; which < 2; which++)
        for (int i = 0; i < pairing->side[which]->comms; i++) {
            if (pairing->done[which][i])
                continue;
            if (!ARRAY_ADD(pairs->extra[which], pairs->extras[which]))
                return -1;
            pairs->extra[which][pairs->extras[which]++] = i;
        }
    return 0;
}

static int run_pairing(struct pairing *pairing, pairing_rule *const *rule, int rules)
{
    int result = start_pairing(pairing);
    for (int i = 0; i < rules && !result; i++)
        result = apply_rule(pairing, rule[i]);
    if (!result)
        result = list_extras(pairing);
    for (int which = 0; which < 2; which++) {
        free(pairing->who[which]);
        free(pairing->done[which]);
    }
    return result;
}

int diff_pair_traces(struct diff_pairs *pairs, const struct diff_side *a, const struct diff_side *b)
{
    static pairing_rule *const rule[] = {same_members, known_members_agree, both_of_all_ranks};
    *pairs = (struct diff_pairs){0};
    struct pairing pairing = {.pairs = pairs, .side = {a, b}, .rank = {-1, -1}};
    return run_pairing(&pairing, rule, sizeof rule / sizeof *rule);
}

int diff_pair_ranks(struct diff_pairs *pairs, const struct diff_side *side, int rank, int with)
{
    static pairing_rule *const rule[] = {same_communicator, same_size};
    *pairs = (struct diff_pairs){0};
    struct pairing pairing = {.pairs = pairs, .side = {side, side}, .rank = {rank, with}};
    return run_pairing(&pairing, rule, sizeof rule / sizeof *rule);
}

void diff_pairs_free(struct diff_pairs *pairs)
{
    for (int i = 0; i < pairs->pairs; i++)
        for (int which = 0; which < 2; which++)
            free(pairs->pair[i].member[which]);
    free(pairs->pair);
    free(pairs->extra[0]);
    free(pairs->extra[1]);
    *pairs = (struct diff_pairs){0};
}
