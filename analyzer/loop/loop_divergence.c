/* loop_divergence.c: groups the members of a communicator by their position in the training loop.
 */
#include "analyzer/loop/loop_divergence.h"

#include <stdlib.h>

static bool is_same_place(const struct loop_divergence *loop_divergence, const struct arrival *a,
                          const struct arrival *b)
{
    switch (loop_divergence->kind) {
    case LOOP_DIVERGENCE_ITERATION:
        return arrivals_iteration(a, b) != DIFFERENT;
    case LOOP_DIVERGENCE_MICRO_STEP:
        return a->loop.micro == b->loop.micro;
    case LOOP_DIVERGENCE_ROUND:
        return !signature_differs(&a->signature, &b->signature);
    default:
        return a->loop.model == b->loop.model;
    }
}

static void add_to_side(struct loop_divergence *loop_divergence, struct loop_divergence_side *side,
                        const struct member *member)
{
    if (rankset_add(&side->ranks, member->rank))
        loop_divergence->failed = true;
}

void loop_divergence_join(struct loop_divergence *loop_divergence, const struct arrival *arrival)
{
    int i = 0;
    while (i < loop_divergence->sides &&
           !is_same_place(loop_divergence, &loop_divergence->side[i].example, arrival))
        i++;
    if (i == LOOP_DIVERGENCE_SIDES_MAX)
        i--;
    else if (i == loop_divergence->sides)
        loop_divergence->side[loop_divergence->sides++].example = *arrival;
    add_to_side(loop_divergence, &loop_divergence->side[i], arrival->member);
}

/* Who came before was where the first was, or was not known to be elsewhere. */
struct loop_divergence *loop_divergence_new(enum loop_divergence_kind kind, const struct comm *comm,
                                            const struct meeting *meeting,
                                            const struct arrival *other)
{
    struct loop_divergence *loop_divergence = calloc(1, sizeof *loop_divergence);
    if (!loop_divergence)
        return NULL;
    loop_divergence->kind = kind;
    loop_divergence->number = meeting->number;
    loop_divergence->side[0].example = meeting->first;
    loop_divergence->sides = 1;
    for (uint32_t i = 0; i < comm->members; i++) {
        const struct member *member = comm->member[i];
        if (member != other->member && member->next > meeting->number &&
            (kind == LOOP_DIVERGENCE_ROUND || member->laps.lap[0].iteration))
            add_to_side(loop_divergence, &loop_divergence->side[0], member);
    }
    loop_divergence_join(loop_divergence, other);
    return loop_divergence;
}

void loop_divergence_free(struct loop_divergence *loop_divergence)
{
    for (int i = 0; loop_divergence && i < loop_divergence->sides; i++)
        rankset_free(&loop_divergence->side[i].ranks);
    free(loop_divergence);
}

static bool is_before(const struct loop_divergence_side *a, const struct loop_divergence_side *b)
{
    int mine = rankset_count(&a->ranks), theirs = rankset_count(&b->ranks);
    return mine > theirs ||
           (mine == theirs && rankset_next(&a->ranks, 0) < rankset_next(&b->ranks, 0));
}

/* Indices of the sides, most ranks first. */
static void sort_sides(const struct loop_divergence *loop_divergence,
                       int order[LOOP_DIVERGENCE_SIDES_MAX])
{
    for (int i = 0; i < loop_divergence->sides; i++) {
        int place = i;
        for (; place &&
               is_before(&loop_divergence->side[i], &loop_divergence->side[order[place - 1]]);
             place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
}

const struct arrival *loop_divergence_example(const struct loop_divergence *loop_divergence,
                                              int side)
{
    int order[LOOP_DIVERGENCE_SIDES_MAX];
    sort_sides(loop_divergence, order);
    return &loop_divergence->side[order[side]].example;
}

struct draft loop_divergence_draft(
    const struct loop_divergence *loop_divergence, const struct check *check,
    const struct comm *comm,
    struct act (*describe)(const struct loop_divergence *loop_divergence,
                           const struct arrival *arrival))
{
    struct draft draft = draft_new(check, loop_divergence->mismatch ? CERTAIN : POSSIBLE, comm);
    int order[LOOP_DIVERGENCE_SIDES_MAX];
    sort_sides(loop_divergence, order);
    draft.failed = loop_divergence->failed;
    draft.finding.number = loop_divergence->number;
    draft.finding.has_number = true;
    for (int i = 0; i < loop_divergence->sides; i++) {
        const struct loop_divergence_side *part = &loop_divergence->side[order[i]];
        struct act act = describe(loop_divergence, &part->example);
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

void loop_divergence_report(struct analyzer *analyzer, struct loop_divergence *loop_divergence,
                            struct draft *draft)
{
    if (loop_divergence->finding)
        findings_replace(analyzer, loop_divergence->finding, draft);
    else
        findings_report(analyzer, draft, &loop_divergence->finding);
}
