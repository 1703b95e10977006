/* wait_cycle.c: finds cycles of waits and reports them as DC202 or DC203. */
#include "analyzer/checks/hang/hang.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/hang/where.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

static const struct wait_node *wait_of(const struct waiting_op *op)
{
    return op->wait && !op->wait->satisfiable ? op->wait : NULL;
}

/* The wait that keeps a thread from going on. */
static const struct wait_node *reason_of_thread(const struct blocked *blocked)
{
    const struct wait_node *reason = blocked_reason(blocked);
    if (reason && !reason->satisfiable)
        return reason;
    for (uint32_t i = 0; i < blocked->ops; i++)
        if (!blocked->op[i]->can_finish)
            return wait_of(waiting_op_culprit(blocked->op[i]));
    return NULL;
}

/* Fills in for whom the wait is and returns what keeps that one; NULL if that is no wait. */
static const struct wait_node *cycle_follow(const struct wait_graph *graph, struct cycle_step *step)
{
    const struct wait_node *wait = step->wait;
    for (uint32_t i = 0; i < wait->behind_count; i++)
        if (!wait->behind[i]->can_start) {
            step->behind = wait->behind[i];
            return wait_of(waiting_op_culprit(step->behind));
        }
    for (uint32_t i = 0; i < wait->missing_count; i++)
        if (!wait->missing[i].can_come) {
            step->missing = &wait->missing[i];
            const struct blocked *blocked =
                wait_graph_member(graph, step->missing->member, step->missing->process);
            return blocked && !step->missing->issued ? reason_of_thread(blocked) : NULL;
        }
    return NULL;
}

/* The same cycle is reported the same way wherever it was entered. */
static bool begins_before(const struct wait_node *a, const struct wait_node *b)
{
    if (a->comm != b->comm)
        return a->comm->order < b->comm->order;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    if (a->number != b->number)
        return a->number < b->number;
    return a->sender != b->sender ? a->sender < b->sender : a->receiver < b->receiver;
}

static void rotate(struct cycle *cycle)
{
    struct cycle turned = {.steps = cycle->steps};
    int first = 0;
    for (int i = 1; i < cycle->steps; i++)
        if (begins_before(cycle->step[i].wait, cycle->step[first].wait))
            first = i;
    for (int i = 0; i < cycle->steps; i++)
        turned.step[i] = cycle->step[(first + i) % cycle->steps];
    *cycle = turned;
}

void cycle_begin_at(struct cycle *cycle, int first)
{
    cycle->steps -= first;
    memmove(cycle->step, cycle->step + first, (size_t)cycle->steps * sizeof *cycle->step);
    rotate(cycle);
}

void cycle_find(const struct wait_graph *graph, const struct wait_node *start, struct cycle *cycle)
{
    const struct wait_node *wait = start;
    cycle->steps = 0;
    while (wait && cycle->steps < CYCLE_STEPS_MAX) {
        for (int i = 0; i < cycle->steps; i++)
            if (cycle->step[i].wait == wait) {
                cycle_begin_at(cycle, i);
                return;
            }
        struct cycle_step *step = &cycle->step[cycle->steps++];
        *step = (struct cycle_step){.wait = wait};
        wait = cycle_follow(graph, step);
    }
    cycle->steps = 0;
}

bool cycle_is_unsettled(const struct wait_graph *graph, const struct cycle *cycle)
{
    uint64_t begin_ns = 0;
    bool any_comes = false;
    for (int i = 0; i < cycle->steps; i++) {
        const struct wait_node *wait = cycle->step[i].wait;
        if (wait->begin_ns > begin_ns)
            begin_ns = wait->begin_ns;
        for (uint32_t k = 0; cycle->step[i].missing && k < wait->missing_count; k++)
            any_comes |= wait->missing[k].can_come;
    }
    return any_comes && graph->moment <= MOMENT_GIVING_UP &&
           graph->now_ns < begin_ns + graph->analyzer->options.hang_after_ns;
}

static void add_who_waits(const struct wait_graph *graph, const struct wait_node *wait,
                          struct draft *draft, struct finding_side *side)
{
    for (uint32_t i = 0; i < wait->comm->members; i++) {
        const struct blocked *blocked;
        if (hang_waits_in(graph, wait, wait->comm->member[i], &blocked))
            draft_rank(draft, side, wait->comm->member[i]);
    }
}

static const struct pending *example_of(const struct wait_graph *graph,
                                        const struct wait_node *wait)
{
    const struct pending *example = NULL;
    for (const struct waiting_op *op = graph->ops; op; op = op->next)
        if (op->wait == wait && op->can_start &&
            (!example || op->pending->member->rank < example->member->rank))
            example = op->pending;
    return example;
}

static enum did behind_did(const struct waiting_op *behind)
{
    const struct waiting_op *culprit = waiting_op_culprit(behind);
    if (culprit->pending->place.timeline == behind->pending->place.timeline)
        return DID_STEP_SAME_STREAM;
    return culprit->pending->member == behind->pending->member ? DID_STEP_EARLIER
                                                               : DID_STEP_OTHER_STREAM;
}

/* For whom the step waits, and what keeps that one. */
static struct act cycle_step_act(const struct wait_graph *graph, const struct cycle_step *step,
                                 const struct wait_node *next)
{
    const struct member *member = step->behind ? step->behind->pending->member
                                               : step->missing->member;
    struct act act = {.did = DID_STEP_UNCALLED,
                      .rank = member ? member_shown_rank(member) : step->missing->rank,
                      .behind = wait_awaited(next)};
    if (step->behind) {
        act.did = behind_did(step->behind);
        return act;
    }
    const struct blocked *blocked =
        wait_graph_member(graph, step->missing->member, step->missing->process);
    if (blocked)
        act.call = call_of_record(&blocked->thread->enter);
    return act;
}

/* The communicator that all steps are on; NULL if there are several. */
static const struct comm *only_comm(const struct cycle *cycle)
{
    for (int i = 1; i < cycle->steps; i++)
        if (cycle->step[i].wait->comm != cycle->step[0].wait->comm)
            return NULL;
    return cycle->step[0].wait->comm;
}

/* Its ncclGroup has messages in both directions. */
static bool is_exchange(const struct wait_graph *graph, const struct pending *message)
{
    for (const struct waiting_op *op = graph->ops; op && message->group; op = op->next)
        if (op->pending && op->pending->group == message->group &&
            op->pending->member == message->member && op->pending->channel &&
            op->pending->receives != message->receives)
            return true;
    return false;
}

/* Returns whether those who wait there have grouped what they send and receive. */
static bool cycle_add_side(struct draft *draft, const struct wait_graph *graph,
                           const struct cycle_step *step, const struct wait_node *next)
{
    const struct pending *example = example_of(graph, step->wait);
    const struct act call = hang_call(step->wait), now = cycle_step_act(graph, step, next);
    bool exchanges = example && is_exchange(graph, example);
    struct finding_side *side = draft_side(draft, &call, NULL);
    if (!side)
        return exchanges;
    add_who_waits(graph, step->wait, draft, side);
    draft_side_now(draft, side, &now, NULL);
    if (example)
        draft_side_at(draft, side, &example->site);
    side->since_ns = step->wait->begin_ns;
    return exchanges;
}

/* The ranks of the steps that have no side of their own join the last one's. */
static void cover_rest(struct draft *draft, const struct cycle *cycle)
{
    for (int i = 0; i < cycle->steps; i++)
        for (uint32_t k = 0; k < cycle->step[i].wait->comm->members; k++)
            draft_cover(draft, cycle->step[i].wait->comm->member[k]->process);
}

/* The same call on two communicators of the same ranks. */
static bool is_one_call(const struct cycle *cycle)
{
    const struct wait_node *a = cycle->step[0].wait, *b = cycle->step[1].wait;
    return cycle->steps == 2 && a->kind == WAIT_COLLECTIVE && b->kind == WAIT_COLLECTIVE &&
           a->comm != b->comm && a->comm->nranks == b->comm->nranks &&
           a->signature.api == b->signature.api && !signature_differs(&a->signature, &b->signature);
}

/* Two sends, one at a later message than the other: perhaps one of the two ranks should still
 * receive. */
static bool are_at_different_sends(const struct cycle *cycle)
{
    const struct wait_node *a = cycle->step[0].wait, *b = cycle->step[cycle->steps - 1].wait;
    return cycle->steps == 2 && a->kind == WAIT_PEER && b->kind == WAIT_PEER && !a->receives &&
           !b->receives && a->number != b->number;
}

static enum advice cycle_advice(const struct cycle *cycle, const struct check *check, bool is_odd,
                                bool all_exchange)
{
    if (is_odd)
        return ADVICE_AS_MANY_MESSAGES;
    if (check == &check_wait_cycle)
        return is_one_call(cycle) ? ADVICE_ONE_CALL_OR_ORDER : ADVICE_BOTH_IN_ONE_ORDER;
    if (all_exchange)
        return ADVICE_COMPARE_PEERS;
    if (are_at_different_sends(cycle))
        return ADVICE_GROUP_OR_EQUAL_LOOPS;
    return cycle->steps == 1 ? ADVICE_GROUP_OWN_MESSAGES : ADVICE_GROUP_MESSAGES;
}

/* All for whom the ranks of the step wait in vain. */
static void add_whom(struct draft *draft, const struct wait_node *wait, struct rankset *whom)
{
    for (uint32_t i = 0; i < wait->behind_count; i++)
        if (!wait->behind[i]->can_start)
            draft->failed |=
                rankset_add(whom, member_shown_rank(wait->behind[i]->pending->member)) != 0;
    for (uint32_t i = 0; i < wait->missing_count; i++) {
        const struct missing *missing = &wait->missing[i];
        int rank = missing->member ? member_shown_rank(missing->member) : missing->rank;
        if (!missing->can_come)
            draft->failed |= rankset_add(whom, rank) != 0;
    }
}

/* What the ranks of a step wait in: "ncclAllReduce #25 of comm generator (4 ranks)". The caller
 * frees it. */
static char *step_name(const struct cycle *cycle, int place)
{
    char title[COMM_TITLE_BYTES];
    struct text text = {0};
    const struct wait_node *wait = cycle->step[place].wait;
    const struct called call = hang_call(wait).call;
    if (kind_is_operation(wait->kind))
        text_add(&text, "%s #%" PRIu64, call_name(&call), wait->number);
    else
        wait_text(wait, &text);
    if (kind_is_operation(wait->kind) && !only_comm(cycle))
        text_add(&text, " of %s", comm_title(wait->comm, title));
    return text_take(&text);
}

static void describe_cycle(struct draft *draft, const struct analyzer *analyzer,
                           const struct cycle *cycle, const struct check *check, bool all_exchange)
{
    char *name[FINDING_SIDES_MAX] = {NULL};
    struct odd_run odd = {0};
    int sides = draft->finding.sides;
    bool is_odd = false;
    for (int i = 0; i < cycle->steps && !is_odd; i++)
        is_odd = message_runs_find(analyzer, cycle->step[i].wait, &odd);
    struct values values = {
        .wait = wait_awaited(cycle->step[0].wait),
        .value = {(uint64_t)cycle->steps, (uint64_t)(cycle->steps - sides), (uint64_t)odd.rank,
                  (uint64_t)odd.peer, odd.now, odd.before},
        .flag = {only_comm(cycle) != NULL, is_odd, odd.receives},
    };
    for (int i = 0; i < sides; i++) {
        values.said[i] = name[i] = step_name(cycle, i);
        add_whom(draft, cycle->step[i].wait, &values.whom[i]);
        draft->failed |= !name[i];
    }
    draft_headline(draft, cycle->steps == 1 ? HEADLINE_WAIT_FOR_ITSELF : HEADLINE_WAIT_CYCLE,
                   cycle_advice(cycle, check, is_odd, all_exchange), &values);
    for (int i = 0; i < sides; i++) {
        rankset_free(&values.whom[i]);
        free(name[i]);
    }
}

void cycle_report(struct analyzer *analyzer, const struct wait_graph *graph,
                  const struct cycle *cycle, const struct check *check, enum certainty certainty)
{
    const struct wait_node *first = cycle->step[0].wait;
    if (findings_find(analyzer, check->code, first->comm->id, first->number))
        return;
    bool lost = false;
    for (int i = 0; i < cycle->steps; i++)
        lost |= hang_is_doubtful(cycle->step[i].wait);
    struct draft draft = hang_draft(check, lost ? POSSIBLE : certainty, graph, first);
    draft.finding.has_number = true;
    bool all_exchange = true;
    for (int i = 0; i < cycle->steps; i++)
        all_exchange &= cycle_add_side(&draft, graph, &cycle->step[i],
                                       cycle->step[(i + 1) % cycle->steps].wait);
    cover_rest(&draft, cycle);
    describe_cycle(&draft, analyzer, cycle, check, all_exchange);
    findings_report(analyzer, &draft, NULL);
}

void cycle_withdraw(struct analyzer *analyzer, const struct cycle *cycle)
{
    const struct wait_node *first = cycle->step[0].wait;
    uint32_t id = cycle->steps ? findings_find(analyzer, DC202, first->comm->id, first->number) : 0;
    if (id)
        findings_resolve(analyzer, id, "others came: a call was left out");
}

const struct check check_wait_cycle = {
    .code = DC202,
    .name = "wait-cycle",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_UNFINISHED,
    .explains = CODES(CODES_HANGS),
    .title = "ranks wait for each other in a cycle",
    .text =
        "The ranks form a wait cycle: each waits in a collective for a rank whose matching call is "
        "queued behind another collective or has not been issued, because its thread waits for "
        "another operation. The finding lists the cycle step by step.\n\n"
        "It shows as a hang. It is certain: what precedes an operation was ordered before it by "
        "its stream, by events, by the default stream, or because a communicator's operations run "
        "one after the other on any stream. Only aborting the communicators ends the hang.\n\n"
        "Imported dumps do not show streams or where hosts wait: there it is possible, and a rank "
        "that did nothing for a long time is assumed to wait in the first operation that it has "
        "not finished. Where every rank has issued both operations and none has finished either, "
        "the different orders in which they issued them are the finding.\n\n"
        "NCCL's user guide, \"Using multiple NCCL communicators concurrently\", requires one order "
        "on all ranks; using separate streams does not lift that rule.\n\n"
        "Kernels of two communicators on independent streams of one GPU can also block each other, "
        "if the GPU can't run both at once: DC204 reports these.",
    .causes =
        CAUSES({"Groups that overlap (data, tensor and pipeline parallel; FSDP with tensor "
                "parallel) whose collectives are issued in an order that depends on the rank.",
                "The cycle goes through two communicators and each rank's two source lines: make "
                "them the same order everywhere."},
               {"Two threads that each issue on a communicator of their own, for example a "
                "prefetching thread beside backward.",
                "The two calls of one rank have different threads."},
               {"Host waits (`.item()`, synchronize, work.wait() on a CPU thread) between the two "
                "operations on some ranks.",
                "A step of the cycle is a host wait rather than a stream.",
                {.did = SIGN_DID(DID_STEP_UNCALLED)}},
               {"One order on the host, but CUDA_DEVICE_MAX_CONNECTIONS=1 or a stream shared by "
                "both groups puts unrelated work between them.",
                "The steps name one stream for operations of both communicators."}),
    .source = "NCCL 2.29 user guide, \"Using multiple NCCL communicators concurrently\"",
    .example =
        "if (rank % 2) {         /* both on one stream */\n    ncclAllReduce(b, b, n, ncclFloat, "
        "ncclSum, second, stream);\n    ncclAllReduce(a, a, n, ncclFloat, ncclSum, first, "
        "stream);\n} else {\n    ncclAllReduce(a, a, n, ncclFloat, ncclSum, first, stream);\n    "
        "ncclAllReduce(b, b, n, ncclFloat, ncclSum, second, stream);\n}\n",
    .fix_c = "ncclAllReduce(a, a, n, ncclFloat, ncclSum, first, stream);       /* in one order on "
             "all ranks */\nncclAllReduce(b, b, n, ncclFloat, ncclSum, second, stream);\n",
    .fix_torch = "dist.all_reduce(a, group=first)      # in one order on all ranks, and from one "
                 "thread\ndist.all_reduce(b, group=second)\n",
};
