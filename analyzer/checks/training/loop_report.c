/* loop_report.c: finds DC504, DC505 and DC507: the members of a communicator make one operation in
 * different places of their training loops: in another iteration, in another micro-step, for
 * another model.
 *
 * The calls may match all the same (every iteration reduces the same buckets), so nothing else may
 * show: gradients of different iterations are averaged. Where they don't match the finding takes
 * the place of the mismatch's, because it says why.
 *
 * What the ranges say is believed only of members that agreed before: two iterations in which all
 * had the same place. Pipelines, evaluation, several models and gradients accumulated in step are
 * all alike on all ranks. */
#include <errno.h>

#include "analyzer/checks/training/loop_report.h"
#include "analyzer/match/divergence.h"
#include "analyzer/model/process.h"
#include "analyzer/match/window.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum {
    LAPS_AGREED = 2, /* iterations in step before a difference means something */
    REACH = 64       /* operations within which it must show whether what differs is comparable */
};

bool loop_is_reduction(unsigned api)
{
    return kind_has(api, KIND_REDUCES) && !kind_has(api, KIND_ROOTED);
}

static bool is_in_reduction(const struct arrival *arrival)
{
    return loop_is_reduction(arrival->signature.api) &&
           (arrival->loop.in_backward || arrival->loop.phase == RANGE_REDUCE);
}

/* --- DC504: another iteration --- */

/* --- DC504 where no range marks iterations --- */

static void keep_round(struct loop_divergence *loop_divergence, const struct comm *comm)
{
    const struct round *round =
        period_place(lockstep_period(comm), loop_divergence->number, &loop_divergence->place);
    loop_divergence->round = round->operations;
    loop_divergence->round_begin = round->begin;
    loop_divergence->round_first = round->hash[0];
}

/* --- DC505: another micro-step --- */

/* --- DC507: another model --- */

static const struct loop_divergence_rule *const rules[] = {
    [LOOP_DIVERGENCE_ITERATION] = &incomplete_iteration_rule,
    [LOOP_DIVERGENCE_ROUND] = &incomplete_round_rule,
    [LOOP_DIVERGENCE_MICRO_STEP] = &different_micro_steps_rule,
    [LOOP_DIVERGENCE_MODEL] = &model_order_rule,
};

/* One reduces a model. Where the calls do not match the other may be at any collective of another
 * model, such as the Broadcast of its buffers. */
static bool are_of_two_models(const struct arrival *a, const struct arrival *b, bool mismatch)
{
    bool reduces_a = is_in_reduction(a), reduces_b = is_in_reduction(b);
    return a->loop.model && b->loop.model && a->loop.model != b->loop.model &&
           (mismatch ? reduces_a || reduces_b : reduces_a && reduces_b);
}

static enum loop_divergence_kind lockstep_kind(const struct arrival *a, const struct arrival *b,
                                               bool mismatch)
{
    enum sameness iteration = arrivals_iteration(a, b);
    if (iteration == DIFFERENT)
        return iteration_is_incomplete(a, b) ? LOOP_DIVERGENCE_ITERATION : LOOP_DIVERGENCE_NONE;
    if (iteration == NOT_KNOWN)
        return LOOP_DIVERGENCE_NONE;
    if (are_of_two_models(a, b, mismatch))
        return LOOP_DIVERGENCE_MODEL;
    if (!is_in_reduction(a) || !is_in_reduction(b))
        return LOOP_DIVERGENCE_NONE;
    return a->loop.micro != b->loop.micro && a->loop.backward == b->loop.backward
               ? LOOP_DIVERGENCE_MICRO_STEP
               : LOOP_DIVERGENCE_NONE;
}

static bool lockstep_is_reported(const struct loop_divergence *loop_divergence)
{
    return loop_divergence->kind == LOOP_DIVERGENCE_ITERATION ||
           loop_divergence->kind == LOOP_DIVERGENCE_ROUND ||
           (loop_divergence->seen[0] && loop_divergence->seen[1]);
}

static void lockstep_report(struct analyzer *analyzer, struct comm *comm)
{
    struct loop_divergence *loop_divergence = comm->slot.loop_divergence;
    const struct loop_divergence_rule *rule = rules[loop_divergence->kind];
    struct draft draft = loop_divergence_draft(loop_divergence, rule->check, comm, rule->describe);
    rule->say(&draft, loop_divergence);
    loop_divergence_report(analyzer, loop_divergence, &draft);
}

/* The other model's turn has come at this member, in the same iteration: its order differs, it left
 * nothing out. */
static bool see_swap(struct loop_divergence *loop_divergence, const struct arrival *arrival)
{
    bool was_reported = lockstep_is_reported(loop_divergence);
    for (int i = 0; i < 2; i++)
        if (rankset_has(&loop_divergence->side[i].ranks, arrival->member->rank) &&
            arrival->loop.model == loop_divergence->side[!i].example.loop.model &&
            arrivals_iteration(arrival, &loop_divergence->side[i].example) != DIFFERENT)
            loop_divergence->seen[i] = true;
    return !was_reported && lockstep_is_reported(loop_divergence);
}

/* Who came first may have gone further already. */
static void see_swaps_before(struct loop_divergence *loop_divergence, const struct comm *comm)
{
    for (uint64_t i = 1; loop_divergence->kind == LOOP_DIVERGENCE_MODEL && i <= REACH; i++) {
        const struct meeting *meeting = lockstep_find(comm, loop_divergence->number + i);
        if (meeting)
            see_swap(loop_divergence, &meeting->first);
    }
}

/* Ranks that only keep others company (Join) make other passes, and are not compared. */
static bool see_totals(struct loop_divergence *loop_divergence)
{
    if (loop_divergence->kind != LOOP_DIVERGENCE_MICRO_STEP ||
        lockstep_is_reported(loop_divergence))
        return false;
    uint32_t a = loop_divergence->side[0].example.micro_steps,
             b = loop_divergence->side[1].example.micro_steps;
    loop_divergence->seen[0] = loop_divergence->seen[1] = a && a == b;
    return lockstep_is_reported(loop_divergence);
}

static void part(struct analyzer *analyzer, const struct operation *operation,
                 const struct meeting *meeting, const struct arrival *arrival)
{
    struct comm *comm = operation->member->comm;
    const struct arrival *first = &meeting->first;
    if (arrivals_iteration(first, arrival) == DIFFERENT &&
        (first->laps <= LAPS_AGREED || arrival->laps <= LAPS_AGREED))
        comm->counts_apart = true; /* each rank numbers its iterations in its own way */
    enum loop_divergence_kind kind =
        comm->counts_apart
            ? LOOP_DIVERGENCE_NONE
            : lockstep_kind(first, arrival, operation->match->result == WINDOW_DIFFERS);
    bool no_ranges = !first->loop.iteration && !arrival->loop.iteration &&
                     operation->match->result == WINDOW_DIFFERS;
    if (no_ranges && (round_is_incomplete(comm, meeting->number, first, arrival) ||
                      round_is_incomplete(comm, meeting->number, arrival, first)))
        kind = LOOP_DIVERGENCE_ROUND;
    if (kind == LOOP_DIVERGENCE_NONE)
        return;
    comm->slot.loop_divergence = loop_divergence_new(kind, comm, meeting, arrival);
    if (!comm->slot.loop_divergence) {
        analyzer->failed = true;
        return;
    }
    comm->slot.loop_divergence->mismatch = operation->match->result == WINDOW_DIFFERS;
    if (kind == LOOP_DIVERGENCE_ROUND)
        keep_round(comm->slot.loop_divergence, comm);
    see_totals(comm->slot.loop_divergence);
    see_swaps_before(comm->slot.loop_divergence, comm);
    if (lockstep_is_reported(comm->slot.loop_divergence))
        lockstep_report(analyzer, comm);
}

void loop_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    if (api_class_of(operation->record.api) != CLASS_COLLECTIVE)
        return;
    struct comm *comm = operation->member->comm;
    struct arrival arrival;
    const struct meeting *meeting = lockstep_arrive(operation, &arrival);
    uint64_t number = operation->record.op.number;
    if (!meeting) {
        if (errno == ENOMEM)
            analyzer->failed = true;
        return;
    }
    struct loop_divergence *loop_divergence = comm->slot.loop_divergence;
    if (loop_divergence && number == loop_divergence->number &&
        (arrival.loop.iteration || loop_divergence->kind == LOOP_DIVERGENCE_ROUND)) {
        loop_divergence_join(loop_divergence, &arrival);
        loop_divergence->mismatch = loop_divergence->mismatch ||
                                    operation->match->result == WINDOW_DIFFERS;
        if (lockstep_is_reported(loop_divergence))
            lockstep_report(analyzer, comm);
        return;
    }
    if (loop_divergence && loop_divergence->kind == LOOP_DIVERGENCE_MODEL &&
        number > loop_divergence->number && see_swap(loop_divergence, &arrival)) {
        lockstep_report(analyzer, comm);
        return;
    }
    if (loop_divergence && !lockstep_is_reported(loop_divergence) &&
        number > loop_divergence->number + REACH) {
        loop_divergence_free(loop_divergence);
        loop_divergence = comm->slot.loop_divergence = NULL;
    }
    bool diverged = comm->slot.divergence && comm->slot.divergence->number < number;
    if (!(loop_divergence || diverged || meeting->arrivals < 2))
        part(analyzer, operation, meeting, &arrival);
}

/* Its arrivals in the loop_divergence, and those that others may yet be compared with, learn what
 * the iteration was. */
static void end_lap(struct member *member, uint32_t micro_steps)
{
    struct loop_divergence *loop_divergence = member->comm->slot.loop_divergence;
    lockstep_end_lap(member, micro_steps);
    for (int i = 0; loop_divergence && i < loop_divergence->sides; i++)
        if (loop_divergence->side[i].example.member == member &&
            loop_divergence->side[i].example.loop.iteration == member->laps.lap[0].iteration)
            loop_divergence->side[i].example.micro_steps = micro_steps;
}

void loop_on_iteration(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct loop *loop = &thread->loop;
    for (struct member *member = thread->process->members; member; member = member->process_next) {
        struct comm *comm = member->comm;
        if (member->laps.lap[0].owner != thread || member->laps.lap[0].iteration != loop->ordinal)
            continue;
        end_lap(member, loop->micro_steps ? loop->micro_steps : loop->backwards);
        if (comm->slot.loop_divergence && see_totals(comm->slot.loop_divergence))
            lockstep_report(analyzer, comm);
    }
}
