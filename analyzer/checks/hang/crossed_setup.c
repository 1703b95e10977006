/* crossed_setup.c: reports ranks that wait in the set-up of different communicators as one finding.
 *
 * A rank that has not come to a communicator of a part of the job is known by its number there
 * only: which process it is, no record says. If ranks wait in several set-ups at once, they are
 * likely to be the ones that the other set-ups lack: process groups created in another order, or
 * PyTorch's sends and receives, for which each pair of ranks sets up a communicator of its own. */
#include "analyzer/checks/hang/crossed_setup.h"

#include "analyzer/checks/hang/hang_sides.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/names.h"

enum { RANKS_BYTES = 128 };

const char crossed_setup_todo[] =
    "Create communicators in one order on all ranks: in PyTorch call new_group on every rank, with "
    "the same lists in the same order. A first send or receive creates the communicator of its two "
    "ranks, so both have to come to it: let every second rank receive first, or use "
    "batch_isend_irecv.";

bool setup_lacks_unknown(const struct wait_node *wait)
{
    if (wait->kind != WAIT_INIT || !wait->missing_count)
        return false;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (wait->missing[i].process || wait->missing[i].issued)
            return false;
    for (uint32_t i = 0; i < wait->comm->members; i++)
        if (wait->comm->member[i]->process->info.world_size <= wait->comm->nranks)
            return false;
    return wait->comm->members > 0;
}

/* Ranks that mixed up one communicator are missing in another. */
static bool follows_from_setup(const struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++)
        if (analyzer->reported[i].check->code == DC109 && !analyzer->reported[i].suppressed &&
            analyzer->reported[i].finding.state == FINDING_OPEN)
            return true;
    return false;
}

/* A finding has this set-up among its sides: what is left of the wait when ranks have ended. */
static bool is_crossed_already(const struct analyzer *analyzer, const struct wait_node *wait)
{
    for (uint32_t i = 0; i < analyzer->reported_count; i++) {
        const struct reported *reported = &analyzer->reported[i];
        bool is_crossed = reported->check == &check_stuck_setup && !reported->suppressed &&
                          reported->finding.state == FINDING_OPEN && reported->finding.sides > 1 &&
                          reported->finding.side[0].act.did == DID_INIT_CROSSED;
        for (uint32_t k = 0; is_crossed && k < wait->comm->members; k++)
            if (rankset_has(&reported->processes, wait->comm->member[k]->process->index))
                return true;
    }
    return false;
}

static void add_crossed_side(struct draft *draft, const struct wait_graph *graph,
                             const struct wait_node *wait, struct text *what)
{
    char ranks[RANKS_BYTES], name[COMM_TITLE_BYTES];
    int sides = draft->finding.sides;
    draft_cover_comm(draft, wait->comm);
    hang_add_waiting(draft, graph, wait);
    if (draft->finding.sides == sides)
        return; /* no room */
    struct finding_side *side = &draft->finding.side[sides];
    draft_side_act(
        draft, side,
        &(struct act){.did = DID_INIT_CROSSED, .call = call_of_api(API_ncclCommInitRank)});
    text_add(what, "%s%s %s in that of %s", sides ? "; " : "",
             rankset_count(&side->ranks) == 1 ? "rank" : "ranks",
             rankset_text(&side->ranks, ranks, sizeof ranks), comm_title(wait->comm, name));
}

bool crossed_setup_report(struct analyzer *analyzer, const struct wait_graph *graph,
                          const struct wait_node *wait, enum certainty certainty)
{
    const struct wait_node *first = wait;
    uint32_t count = 0;
    if (!setup_lacks_unknown(wait))
        return false;
    if (follows_from_setup(analyzer) || is_crossed_already(analyzer, wait))
        return true;
    for (const struct wait_node *next = graph->waits; next; next = next->next) {
        if (!setup_lacks_unknown(next))
            continue;
        if (findings_find(analyzer, DC209, next->comm->id, next->number))
            return true;
        if (next->comm->order < first->comm->order)
            first = next;
        count++;
    }
    if (count < 2)
        return false;
    struct draft draft = draft_new(&check_stuck_setup, certainty, first->comm);
    struct text what = {0};
    draft.finding.number = first->number;
    draft.finding.first_ns = first->begin_ns;
    draft.finding.last_ns = graph->now_ns > first->begin_ns ? graph->now_ns : first->begin_ns;
    text_add(&what, "ranks wait in the set-up of different communicators, each of which lacks "
                    "others of them: ");
    for (const struct wait_node *next = graph->waits; next; next = next->next)
        if (setup_lacks_unknown(next))
            add_crossed_side(&draft, graph, next, &what);
    draft_say(&draft, &what, crossed_setup_todo);
    findings_report(analyzer, &draft, NULL);
    return true;
}
