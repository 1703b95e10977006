/* hang_sides.c: fills in who waits and who is missing as the sides of a finding. */
#include "analyzer/checks/hang/hang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/hang/dormant.h"
#include "analyzer/hang/ends.h"
#include "analyzer/hang/pending_index.h"
#include "analyzer/hang/where.h"
#include "analyzer/match/channel.h"
#include "analyzer/match/other_comm.h"
#include "analyzer/match/window.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/own_members.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

static bool is_waiting(const struct wait_graph *graph, const struct member *member,
                       const struct wait_node *wait, const struct blocked **blocked)
{
    for (const struct thread *thread = member->process->threads; thread; thread = thread->hh.next) {
        *blocked = wait_graph_blocked(graph, thread);
        for (uint32_t i = 0; *blocked && i < (*blocked)->waits; i++)
            if ((*blocked)->wait[i] == wait)
                return true;
    }
    *blocked = NULL;
    return false;
}

struct act hang_call(const struct wait_node *wait)
{
    if (kind_is_operation(wait->kind))
        return (struct act){.did = DID_CALLED, .call = signature_call(&wait->signature)};
    return (struct act){.did = DID_CALLED, .call = call_of_api(setup_rows[wait->kind].call)};
}

/* Where the first that came called the operation; NULL where the wait is for something else. */
static const struct site *hang_issued_at(const struct wait_node *wait)
{
    if (wait->kind == WAIT_PEER)
        return channel_site(wait->channel, wait->receives, wait->number);
    struct slot *slot = wait->kind == WAIT_COLLECTIVE ? window_slot(wait->comm, wait->number)
                                                      : NULL;
    return slot ? &slot_variant(slot, 0)->site : NULL;
}

/* The member's own call of the collective, or NULL. */
static const struct site *own_call(struct draft *draft, const struct wait_graph *graph,
                                   const struct wait_node *wait, const struct member *member)
{
    const struct pending *pending = NULL;
    if (wait->kind == WAIT_COLLECTIVE &&
        pending_index_find(graph->index, member, NULL, false, wait->number, &pending) < 0)
        draft->failed = true;
    return pending ? &pending->site : NULL;
}

/* Where the thread waits. The side's stacks are of one process: where the call is of another, the
 * member's own is shown, or none. */
static void place_waiting(struct draft *draft, struct finding_side *side,
                          const struct blocked *blocked, const struct site *own)
{
    const struct site *site = &blocked->thread->enter_site;
    const struct act in_call = {.did = DID_IN_CALL,
                                .call = call_of_record(&blocked->thread->enter)};
    draft_side_now(draft, side, &in_call, site);
    if (side->process == blocked->thread->process->index)
        return;
    if (own) {
        draft_side_at(draft, side, own);
        return;
    }
    side->process = blocked->thread->process->index;
    side->stack = 0;
    if (*side->phase)
        return;
    free(side->phase);
    side->phase = strdup(site_phase(site));
    draft->failed = draft->failed || !side->phase;
}

/* The member's own operation in the wait can't start: it does not wait in it yet. */
static bool hang_is_behind(const struct wait_node *wait, const struct member *member)
{
    const struct waiting_op *behind = wait_node_behind(wait, member->rank);
    return behind && !behind->can_start;
}

bool hang_waits_in(const struct wait_graph *graph, const struct wait_node *wait,
                   const struct member *member, const struct blocked **blocked)
{
    if (!is_waiting(graph, member, wait, blocked))
        *blocked = NULL;
    if (wait_node_missing(wait, member->rank) || hang_is_behind(wait, member))
        return false;
    /* Those that are left out are neither missing nor here. */
    if (setup_rows[wait->kind].comers == COMERS_SURVIVORS && !*blocked &&
        !member->background.goes_on)
        return false;
    return wait->kind != WAIT_PEER ||
           member->rank == (wait->receives ? wait->receiver : wait->sender);
}

uint64_t hang_patience_ns(const struct wait_graph *graph, const struct wait_node *wait)
{
    uint64_t given_up = graph->analyzer->given_up;
    bool is_given_up = graph->quitter && (!given_up || given_up == wait->comm->id);
    const struct member *member = is_given_up ? own_member_first(graph->quitter, wait->comm->id)
                                              : NULL;
    const struct blocked *blocked;
    for (; member; member = member->own_next)
        if (hang_waits_in(graph, wait, member, &blocked))
            return wait_ending_patience_ns(graph->analyzer);
    return graph->patience_ns;
}

/* Those whose calls of it are only queued wait for what they are queued behind; where nobody else
 * called it, they are the ones that called it. */
static bool calls_it(const struct wait_graph *graph, const struct wait_node *wait,
                     const struct member *member, bool queued, const struct blocked **blocked)
{
    if (!queued)
        return hang_waits_in(graph, wait, member, blocked);
    if (!is_waiting(graph, member, wait, blocked))
        *blocked = NULL;
    return hang_is_behind(wait, member);
}

/* Where a member that is in no call issued what goes on in the background; NULL: none does. */
static const struct site *background_site(const struct member *member)
{
    if (member->background.goes_on)
        return &member->background.site;
    return member->initialising ? &member->arrival : NULL;
}

void hang_add_waiting(struct draft *draft, const struct wait_graph *graph,
                      const struct wait_node *wait)
{
    const struct site *issued = hang_issued_at(wait);
    const struct site *message = wait->kind == WAIT_PEER ? issued : NULL;
    const struct act call = hang_call(wait);
    struct finding_side *side = draft_side(draft, &call, issued);
    const struct blocked *example = NULL;
    const struct member *example_member = NULL;
    for (int queued = 0; side && queued < 2 && rankset_count(&side->ranks) == 0; queued++)
        for (uint32_t i = 0; i < wait->comm->members; i++) {
            const struct member *member = wait->comm->member[i];
            const struct blocked *blocked;
            if (!calls_it(graph, wait, member, queued, &blocked))
                continue;
            draft_rank(draft, side, member);
            if (!issued && !blocked && background_site(member)) {
                issued = background_site(member);
                draft_side_at(draft, side, issued);
            }
            if (blocked && (!example || (issued && member->process == issued->process))) {
                example = blocked;
                example_member = member;
            }
        }
    if (!side)
        return;
    if (example && !kind_is_operation(wait->kind) &&
        !issued) /* the call that they wait in is the one that it is about */
        draft_side_at(draft, side, &example->thread->enter_site);
    if (example)
        place_waiting(draft, side, example, own_call(draft, graph, wait, example_member));
    else if (message)
        draft_side_at(draft, side, message);
    side->since_ns = wait->begin_ns;
}

/* A call that every rank makes once, as a split: who ended without it skipped it, rather than an
 * iteration. */
static bool left_without_call(const struct wait_node *wait, const struct missing *missing)
{
    const struct member *member = missing->member;
    if (!kind_is_counted(wait->kind) || missing->issued ||
        (member && (member->aborted || member_gave_up(member))))
        return false;
    return (missing->process && missing->process->end_class == END_CLASS_CLEAN) ||
           (member && member->leaving && !process_is_ending(missing->process));
}

/* A call of the same kind that it made on another communicator, and the one who waits did not. */
static bool called_elsewhere(const struct wait_node *wait, const struct missing *missing,
                             struct other_call *call)
{
    if (wait->kind != WAIT_COLLECTIVE || !missing->member || missing->issued || missing->held)
        return false;
    for (uint32_t i = 0; i < wait->comm->members; i++) {
        const struct member *waiting = wait->comm->member[i];
        if (waiting->next > wait->number && !wait_node_missing(wait, waiting->rank))
            return other_comm_used(missing->member, waiting, &wait->signature, call);
    }
    return false;
}

static struct act missing_act(const struct wait_node *wait, const struct missing *missing)
{
    if (missing->held)
        return (struct act){.did = DID_HELD_IN_GROUP};
    if (left_without_call(wait, missing) || hang_is_given_up(wait, missing))
        return (struct act){.did = DID_NEVER_CALLED};
    bool aborted_it = missing->issued && missing->member->aborted &&
                      missing->process->end_class != END_CLASS_CAUSE;
    if (aborted_it || (missing->member && member_gave_up(missing->member)))
        return (struct act){.did = DID_ABORTED, .name = end_exception(missing->process)};
    if (missing->process && (missing->process->end_class == END_CLASS_CAUSE ||
                             missing->process->end_class == END_CLASS_CLEAN))
        return end_act(missing->process);
    if (missing->process && process_is_ending(missing->process))
        return end_act(missing->process);
    if (missing->member && missing->member->aborted && wait->kind != WAIT_LEAVE)
        return (struct act){.did = DID_ABORTED, .name = end_exception(missing->member->process)};
    if (missing->member && missing->member->leaving && wait->kind != WAIT_LEAVE)
        return (struct act){.did = DID_LEFT, .name = end_exception(missing->process)};
    if (kind_makes_comm(wait->kind))
        return (struct act){.did = DID_NOT_COME};
    struct other_call other;
    if (called_elsewhere(wait, missing, &other)) {
        struct act act = {.did = DID_NEVER_CALLED_HERE,
                          .wait = {.kind = AWAITED_OPERATION,
                                   .call = signature_call(&other.signature),
                                   .comm = other.comm->id,
                                   .number = other.number}};
        comm_title(other.comm, act.wait.title);
        return act;
    }
    bool counts_returns = missing->process && missing->process->info.lacks & LACKS_UNRETURNED;
    return (struct act){.did = counts_returns ? DID_NOT_CALLED_OR_INSIDE : DID_NEVER_CALLED};
}

/* The side that did this and stands there, created if there is room; else the last one. Of those
 * who have left, it is chance how far each of them is on its way out. */
static struct finding_side *missing_side(struct draft *draft, const struct act *act,
                                         const struct where *where)
{
    for (int i = 1; i < draft->finding.sides; i++) {
        struct finding_side *side = &draft->finding.side[i];
        if (act_equal(&side->act, act) &&
            (act->did == DID_LEFT || act_equal(&side->now, &where->act)))
            return side;
    }
    struct finding_side *side = draft_side(draft, act, &where->site);
    if (!side)
        return &draft->finding.side[FINDING_SIDES_MAX - 1];
    draft_side_now(draft, side, &where->act, &where->site);
    return side;
}

bool hang_side_ended(const struct finding_side *side)
{
    return did_end(side->act.did) || side->act.did == DID_ENDING;
}

uint32_t hang_other_threads(const struct wait_node *wait)
{
    const struct process *process = wait->comm->members ? wait->comm->member[0]->process : NULL;
    if (wait->kind != WAIT_INIT || !process || process->info.world_size > 1)
        return 0;
    for (uint32_t i = 0; i < wait->comm->members; i++)
        if (wait->comm->member[i]->process != process)
            return 0;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (wait->missing[i].process)
            return 0;
    uint32_t others = 0;
    for (const struct thread *thread = process->threads; thread; thread = thread->hh.next)
        others += !thread->in_call && !thread->has_ended && (int)thread->tid != process->info.pid;
    return others >= wait->missing_count ? others : 0;
}

static void add_missing_side(struct draft *draft, const struct wait_graph *graph,
                             const struct wait_node *wait, const struct missing *missing)
{
    struct where where;
    const struct act act = missing_act(wait, missing);
    where_find(graph, missing->process, missing->member, &where);
    dormant_find(graph->analyzer, wait->comm, missing, &where);
    uint32_t others = where.act.did == DID_NOT_SEEN ? hang_other_threads(wait) : 0;
    if (others) {
        where.site.process = wait->comm->member[0]->process;
        where.act = (struct act){
            .did = DID_MAY_BE_THREAD, .value = (int)others, .number = where.site.process->info.pid};
    }
    if (!where.site.process)
        where.site.process = missing->process;
    struct finding_side *side = missing_side(draft, &act, &where);
    if (missing->held)
        draft_side_at(draft, side, &missing->held->site);
    if (act.did == DID_ABORTED && !missing->process->ending.has_exception)
        draft_side_at(draft, side, &missing->member->abort.site);
    if (rankset_add(&side->ranks, missing_shown_rank(missing)))
        draft->failed = true;
}

/* Which of the job's ranks are missing is not known: those that have not called NCCL yet may be. */
static void add_dormant(struct draft *draft, const struct analyzer *analyzer)
{
    for (uint32_t i = 0; i < analyzer->dormants.count; i++) {
        struct dormant_place dormant;
        if (!dormant_find_place(analyzer, i, &dormant) || dormant.rank < 0)
            continue;
        const struct act act = {
            .did = DID_NO_CALL_YET, .number = (uint64_t)dormant.pid, .name = dormant.place};
        struct finding_side *side = draft_side(draft, &act, NULL);
        if (side && rankset_add(&side->ranks, dormant.rank))
            draft->failed = true;
    }
}

static bool ended_as(const struct missing *missing, enum end_class end_class)
{
    return missing->process && missing->process->end_class == end_class;
}

void hang_add_missing(struct draft *draft, const struct wait_graph *graph,
                      const struct wait_node *wait)
{
    bool has_cause = false, never_came = false;
    for (uint32_t i = 0; i < wait->missing_count; i++)
        never_came |= ended_as(&wait->missing[i], END_CLASS_CAUSE) && !wait->missing[i].issued;
    if (setup_lacks_unknown(wait)) {
        add_dormant(draft, graph->analyzer);
        return;
    }
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        draft_cover(draft, wait->missing[i].process);
        /* Those that made the call waited for those that did not, until they ended. */
        if (!ended_as(&wait->missing[i], END_CLASS_CAUSE) ||
            (never_came && wait->missing[i].issued))
            continue;
        add_missing_side(draft, graph, wait, &wait->missing[i]);
        has_cause = true;
    }
    /* Ranks that ended because another did may have been on their way: how far they came is chance.
     */
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!ended_as(&wait->missing[i], END_CLASS_CAUSE) &&
            !(has_cause && ended_as(&wait->missing[i], END_CLASS_CONSEQUENCE)))
            add_missing_side(draft, graph, wait, &wait->missing[i]);
}

bool hang_is_doubtful(const struct wait_node *wait)
{
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if ((wait->missing[i].process && wait->missing[i].process->lost.control) ||
            hang_is_given_up(wait, &wait->missing[i]))
            return true;
    for (uint32_t i = 0; i < wait->behind_count; i++)
        if (wait->behind[i]->pending->member->process->lost.control)
            return true;
    return false;
}

bool hang_is_given_up(const struct wait_node *wait, const struct missing *missing)
{
    const struct member *member = missing->member;
    return member && !missing->issued && member->abort.aside &&
           member->abort.site.time_ns > wait->begin_ns && !member->process->ending.has_exception;
}

bool hang_left_cleanly(const struct missing *missing)
{
    const struct member *member = missing->member;
    if (member && member_gave_up(member))
        return false;
    return (missing->process && missing->process->end_class == END_CLASS_CLEAN) ||
           (member && member->leaving && !member->aborted);
}

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

const struct reported *hang_next_open(const struct analyzer *analyzer, uint32_t *next)
{
    while (*next < analyzer->reported_count) {
        const struct reported *reported = &analyzer->reported[(*next)++];
        if (!reported->suppressed && reported->finding.state == FINDING_OPEN)
            return reported;
    }
    return NULL;
}

/* A hang or what is certain to be wrong says more, and often why the rank failed. */
bool hang_has_open_error(const struct analyzer *analyzer)
{
    const struct reported *reported;
    uint32_t i = 0;
    while ((reported = hang_next_open(analyzer, &i)))
        if (reported->finding.severity == SEVERITY_ERROR)
            return true;
    return false;
}

bool hang_lacks_trace(const struct analyzer *analyzer)
{
    const struct comm *comm = analyzer->first_comm;
    while (comm && !comm_has_untraced(comm))
        comm = comm->next;
    return comm != NULL;
}

struct draft hang_draft(const struct check *check, enum certainty certainty,
                        const struct wait_graph *graph, const struct wait_node *wait)
{
    struct draft draft =
        draft_new(check, hang_is_doubtful(wait) ? POSSIBLE : certainty, wait->comm);
    draft.finding.number = wait->number;
    draft.finding.first_ns = wait->begin_ns;
    draft.finding.last_ns = graph->now_ns > wait->begin_ns ? graph->now_ns : wait->begin_ns;
    return draft;
}
