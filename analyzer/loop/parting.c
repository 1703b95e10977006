/* parting.c: groups the members of a communicator by their position in the training loop. */
#include "analyzer/loop/parting.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS_BYTES = 128 };

static bool is_same_place(const struct parting *parting, const struct arrival *a,
                          const struct arrival *b)
{
    switch (parting->kind) {
    case PARTING_ITERATION:
        return arrivals_iteration(a, b) != DIFFERENT;
    case PARTING_MICRO_STEP:
        return a->loop.micro == b->loop.micro;
    case PARTING_ROUND:
        return !signature_differs(&a->signature, &b->signature);
    default:
        return a->loop.model == b->loop.model;
    }
}

static void add(struct parting *parting, struct parting_side *side, const struct member *member)
{
    if (rankset_add(&side->ranks, member->rank))
        parting->failed = true;
}

void parting_join(struct parting *parting, const struct arrival *arrival)
{
    int i = 0;
    while (i < parting->sides && !is_same_place(parting, &parting->side[i].example, arrival))
        i++;
    if (i == PARTING_SIDES_MAX)
        i--;
    else if (i == parting->sides)
        parting->side[parting->sides++].example = *arrival;
    add(parting, &parting->side[i], arrival->member);
}

/* Who came before was where the first was, or was not known to be elsewhere. */
struct parting *parting_new(enum parting_kind kind, const struct comm *comm,
                            const struct meeting *meeting, const struct arrival *other)
{
    struct parting *parting = calloc(1, sizeof *parting);
    if (!parting)
        return NULL;
    parting->kind = kind;
    parting->number = meeting->number;
    parting->side[0].example = meeting->first;
    parting->sides = 1;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (member != other->member && member->next > meeting->number &&
            (kind == PARTING_ROUND || member->lap[0].iteration))
            add(parting, &parting->side[0], member);
    }
    parting_join(parting, other);
    return parting;
}

void parting_free(struct parting *parting)
{
    for (int i = 0; parting && i < parting->sides; i++)
        rankset_free(&parting->side[i].ranks);
    free(parting);
}

static bool is_before(const struct parting_side *a, const struct parting_side *b)
{
    int mine = rankset_count(&a->ranks), theirs = rankset_count(&b->ranks);
    return mine > theirs ||
           (mine == theirs && rankset_next(&a->ranks, 0) < rankset_next(&b->ranks, 0));
}

/* Indices of the sides, most ranks first. */
static void sort_sides(const struct parting *parting, int order[PARTING_SIDES_MAX])
{
    for (int i = 0; i < parting->sides; i++) {
        int place = i;
        for (; place && is_before(&parting->side[i], &parting->side[order[place - 1]]); place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
}

const struct arrival *parting_example(const struct parting *parting, int side)
{
    int order[PARTING_SIDES_MAX];
    sort_sides(parting, order);
    return &parting->side[order[side]].example;
}

struct draft parting_draft(const struct parting *parting, const struct check *check,
                           const struct comm *comm,
                           struct act (*describe)(const struct parting *parting,
                                                  const struct arrival *arrival))
{
    struct draft draft = draft_new(check, parting->mismatch ? CERTAIN : POSSIBLE, comm);
    int order[PARTING_SIDES_MAX];
    sort_sides(parting, order);
    draft.failed = parting->failed;
    draft.finding.number = parting->number;
    draft.finding.has_number = true;
    for (int i = 0; i < parting->sides; i++) {
        const struct parting_side *part = &parting->side[order[i]];
        struct act act = describe(parting, &part->example);
        act.call = signature_call(&part->example.signature);
        struct finding_side *side = draft_side(&draft, &act, &part->example.site);
        for (uint32_t k = 0; k < comm->members; k++)
            if (rankset_has(&part->ranks, comm->member[k]->rank))
                draft_rank(&draft, side, comm->member[k]);
        uint64_t time_ns = part->example.site.time_ns;
        if (!draft.finding.first_ns || time_ns < draft.finding.first_ns)
            draft.finding.first_ns = time_ns;
        if (time_ns > draft.finding.last_ns)
            draft.finding.last_ns = time_ns;
    }
    draft_cover_comm(&draft, comm);
    return draft;
}

char *draft_ranks_text(const struct draft *draft, int side, char *text, size_t bytes)
{
    char ranks[RANKS_BYTES];
    const struct rankset *set = &draft->finding.side[side].ranks;
    snprintf(text, bytes, "%s %s", rankset_count(set) == 1 ? "rank" : "ranks",
             rankset_text(set, ranks, sizeof ranks));
    return text;
}

void parting_report(struct analyzer *analyzer, struct parting *parting, struct draft *draft)
{
    if (parting->finding)
        findings_replace(analyzer, parting->finding, draft);
    else
        findings_report(analyzer, draft, &parting->finding);
}
