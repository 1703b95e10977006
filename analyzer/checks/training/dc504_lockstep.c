/* dc504_lockstep.c: DC504, DC505 and DC507: the members of a communicator make one operation in
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
#include <inttypes.h>
#include <stdio.h>

#include "analyzer/match/divergence.h"
#include "analyzer/loop/loop_divergence.h"
#include "analyzer/model/process.h"
#include "analyzer/match/window.h"
#include "lib/trace/names.h"
#include "lib/trace/lacks.h"

enum {
    LAPS_AGREED = 2, /* iterations in step before a difference means something */
    REACH = 64,      /* operations within which it must show whether what differs is comparable */
    PLACE_BYTES = 96,
    RANKS_BYTES = 160
};

static bool lockstep_is_reduction(const struct signature *signature)
{
    return kind_has(signature->api, KIND_REDUCES) && !kind_has(signature->api, KIND_ROOTED);
}

static bool is_in_reduction(const struct arrival *arrival)
{
    return lockstep_is_reduction(&arrival->signature) &&
           (arrival->loop.in_backward || arrival->loop.phase == RANGE_REDUCE);
}

static bool is_ahead_of(const struct arrival *a, const struct arrival *b)
{
    return a->loop.numbered ? a->loop.number > b->loop.number : a->laps > b->laps;
}

/* --- DC504: another iteration
 * ------------------------------------------------------------------------------------- */

/* What the one that is ahead made in the iteration that the other is still in, and what it usually
 * makes. */
static void laps_of(const struct arrival *ahead, const struct arrival *behind, uint32_t *made,
                    uint32_t *usual)
{
    bool took_part = ahead->loop.numbered ? ahead->before.number == behind->loop.number
                                          : ahead->laps == behind->laps + 1;
    *made = took_part ? ahead->before.operations : 0;
    *usual = took_part ? ahead->earlier.operations : ahead->before.operations;
}

/* It went on too early. If the other makes more than it usually does instead, it is that one's call
 * too many. */
static bool went_on_early(const struct arrival *a, const struct arrival *b)
{
    const struct arrival *ahead = is_ahead_of(a, b) ? a : b;
    const struct arrival *behind = ahead == a ? b : a;
    uint32_t made, usual;
    laps_of(ahead, behind, &made, &usual);
    return made < usual && behind->now.operations <= behind->before.operations;
}

static struct act describe_iteration(const struct loop_divergence *loop_divergence,
                                     const struct arrival *arrival)
{
    bool ahead = false;
    for (int i = 0; i < loop_divergence->sides; i++)
        ahead = ahead || is_ahead_of(arrival, &loop_divergence->side[i].example);
    return (struct act){.did = ahead ? DID_NEXT_ITERATION : DID_LAST_ITERATION};
}

static void say_iteration(struct draft *draft, const struct loop_divergence *loop_divergence,
                          const struct comm *comm)
{
    const struct arrival *a = loop_divergence_example(loop_divergence, 0),
                         *b = loop_divergence_example(loop_divergence, 1);
    int early = is_ahead_of(a, b) ? 0 : 1;
    const struct arrival *ahead = early ? b : a;
    const struct arrival *behind = early ? a : b;
    char ranks[RANKS_BYTES], others[RANKS_BYTES], next[PLACE_BYTES], before[PLACE_BYTES], name[16];
    uint32_t made, usual;
    laps_of(ahead, behind, &made, &usual);
    struct text what = {0};
    text_add(&what,
             "%s began %s after %" PRIu32 " of the %" PRIu32
             " operations that it makes on %s in an iteration; "
             "at operation #%" PRIu64 " %s %s still in %s",
             draft_ranks_text(draft, early, ranks, sizeof ranks),
             arrival_iteration_text(ahead, next, sizeof next), made, usual,
             comm_name(comm->id, name), loop_divergence->number,
             draft_ranks_text(draft, !early, others, sizeof others),
             rankset_count(&draft->finding.side[!early].ranks) == 1 ? "is" : "are",
             arrival_iteration_text(behind, before, sizeof before));
    if (*site_phase(&behind->site))
        text_add(&what, " (%s)", site_phase(&behind->site));
    text_add(&what, loop_divergence->mismatch ? ", and the calls there do not match"
                                              : ": what is reduced there mixes two iterations");
    draft_say(draft, &what,
              "Make every rank reduce all buckets in every iteration: reduce zeros where a batch "
              "is skipped, "
              "an exception was caught or parameters were not used.");
}

/* --- DC504 where no range marks iterations
 * ------------------------------------------------------------------------- */

/* One side goes on with the round that all have made so far; the other begins the next, and leaves
 * out reductions only. */
static bool is_next_round(const struct comm *comm, uint64_t number, const struct arrival *usual,
                          const struct arrival *early)
{
    uint32_t place;
    const struct round *round = period_place(lockstep_period(comm), number, &place);
    return round && place && signature_hash(&usual->signature) == round->hash[place] &&
           signature_hash(&early->signature) == round->hash[0] &&
           lockstep_is_reduction(&usual->signature) && lockstep_is_reduction(&early->signature);
}

static void keep_round(struct loop_divergence *loop_divergence, const struct comm *comm)
{
    const struct round *round =
        period_place(lockstep_period(comm), loop_divergence->number, &loop_divergence->place);
    loop_divergence->round = round->operations;
    loop_divergence->round_begin = round->begin;
    loop_divergence->round_first = round->hash[0];
}

static bool is_early(const struct loop_divergence *loop_divergence, const struct arrival *arrival)
{
    return signature_hash(&arrival->signature) == loop_divergence->round_first;
}

static struct act describe_round(const struct loop_divergence *loop_divergence,
                                 const struct arrival *arrival)
{
    return (struct act){.did = is_early(loop_divergence, arrival) ? DID_NEXT_ROUND
                                                                  : DID_LAST_ROUND};
}

static void say_round(struct draft *draft, const struct loop_divergence *loop_divergence,
                      const struct comm *comm)
{
    int early = is_early(loop_divergence, loop_divergence_example(loop_divergence, 0)) ? 0 : 1;
    char ranks[RANKS_BYTES], others[RANKS_BYTES], name[16];
    struct text what = {0};
    text_add(&what,
             "%s began the next round after %" PRIu32 " of the %" PRIu32
             " operations that all ranks repeat on %s since #%" PRIu64 "; at operation #%" PRIu64
             " %s still %s the one before, and the calls there do not match",
             draft_ranks_text(draft, early, ranks, sizeof ranks), loop_divergence->place,
             loop_divergence->round, comm_name(comm->id, name), loop_divergence->round_begin,
             loop_divergence->number, draft_ranks_text(draft, !early, others, sizeof others),
             rankset_count(&draft->finding.side[!early].ranks) == 1 ? "makes" : "make");
    draft_say(draft, &what,
              "Make every rank reduce all buckets in every iteration: reduce zeros where a batch "
              "is skipped, "
              "an exception was caught or parameters were not used.");
}

/* --- DC505: another micro-step
 * ------------------------------------------------------------------------------------- */

static struct act describe_micro(const struct loop_divergence *loop_divergence,
                                 const struct arrival *arrival)
{
    (void)loop_divergence;
    return (struct act){.did = DID_IN_MICRO_STEP, .number = arrival->loop.micro};
}

static void say_micro(struct draft *draft, const struct loop_divergence *loop_divergence,
                      const struct comm *comm)
{
    char ranks[RANKS_BYTES], iteration[PLACE_BYTES], name[16];
    struct text what = {0};
    for (int i = 0; i < loop_divergence->sides; i++)
        text_add(&what, "%s%s %s in micro-step %" PRIu32, i ? ", " : "",
                 draft_ranks_text(draft, i, ranks, sizeof ranks),
                 rankset_count(&draft->finding.side[i].ranks) == 1 ? "reduces" : "reduce",
                 loop_divergence_example(loop_divergence, i)->loop.micro);
    text_add(&what,
             " of %s, as operation #%" PRIu64
             " of %s: gradients of different micro-steps are reduced together",
             arrival_iteration_text(loop_divergence_example(loop_divergence, 0), iteration,
                                    sizeof iteration),
             loop_divergence->number, comm_name(comm->id, name));
    draft_say(draft, &what,
              "Reduce after the same micro-step on every rank: no_sync() must not depend on the "
              "rank or its data.");
}

/* --- DC507: another model
 * ------------------------------------------------------------------------------------------ */

static struct act describe_model(const struct loop_divergence *loop_divergence,
                                 const struct arrival *arrival)
{
    (void)loop_divergence;
    const char *phase = site_phase(&arrival->site);
    return (struct act){.did = *phase ? DID_IN_MODEL : DID_IN_OTHER_MODEL, .phase = phase};
}

static void say_model(struct draft *draft, const struct loop_divergence *loop_divergence,
                      const struct comm *comm)
{
    char ranks[RANKS_BYTES], name[16];
    struct text what = {0};
    for (int i = 0; i < loop_divergence->sides; i++)
        text_add(&what, "%s%s %s in %s", i ? ", " : "",
                 draft_ranks_text(draft, i, ranks, sizeof ranks),
                 rankset_count(&draft->finding.side[i].ranks) == 1 ? "is" : "are",
                 site_phase(&loop_divergence_example(loop_divergence, i)->site));
    text_add(&what,
             " at operation #%" PRIu64
             " of %s: two models share the communicator, and their reductions come in "
             "another order",
             loop_divergence->number, comm_name(comm->id, name));
    draft_say(draft, &what,
              "Give each model a communicator of its own (new_group, ncclCommSplit), or reduce the "
              "models in one order on every rank.");
}

/* --- all -------------------------------------------------------------------------------- */

static const struct loop_divergence_rule {
    const struct check *check;
    struct act (*describe)(const struct loop_divergence *, const struct arrival *);
    void (*say)(struct draft *, const struct loop_divergence *, const struct comm *);
} rules[] = {
    [LOOP_DIVERGENCE_ITERATION] = {&check_incomplete_iteration, describe_iteration, say_iteration},
    [LOOP_DIVERGENCE_ROUND] = {&check_incomplete_iteration, describe_round, say_round},
    [LOOP_DIVERGENCE_MICRO_STEP] = {&check_different_micro_steps, describe_micro, say_micro},
    [LOOP_DIVERGENCE_MODEL] = {&check_model_order, describe_model, say_model},
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
        return went_on_early(a, b) ? LOOP_DIVERGENCE_ITERATION : LOOP_DIVERGENCE_NONE;
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
    struct loop_divergence *loop_divergence = comm->loop_divergence;
    const struct loop_divergence_rule *rule = &rules[loop_divergence->kind];
    struct draft draft = loop_divergence_draft(loop_divergence, rule->check, comm, rule->describe);
    rule->say(&draft, loop_divergence, comm);
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
    if (no_ranges && (is_next_round(comm, meeting->number, first, arrival) ||
                      is_next_round(comm, meeting->number, arrival, first)))
        kind = LOOP_DIVERGENCE_ROUND;
    if (kind == LOOP_DIVERGENCE_NONE)
        return;
    comm->loop_divergence = loop_divergence_new(kind, comm, meeting, arrival);
    if (!comm->loop_divergence) {
        analyzer->failed = true;
        return;
    }
    comm->loop_divergence->mismatch = operation->match->result == WINDOW_DIFFERS;
    if (kind == LOOP_DIVERGENCE_ROUND)
        keep_round(comm->loop_divergence, comm);
    see_totals(comm->loop_divergence);
    see_swaps_before(comm->loop_divergence, comm);
    if (lockstep_is_reported(comm->loop_divergence))
        lockstep_report(analyzer, comm);
}

static void lockstep_on_operation(struct analyzer *analyzer, const struct event *event)
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
    struct loop_divergence *loop_divergence = comm->loop_divergence;
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
        loop_divergence = comm->loop_divergence = NULL;
    }
    bool diverged = comm->divergence && comm->divergence->number < number;
    if (!(loop_divergence || diverged || meeting->arrivals < 2))
        part(analyzer, operation, meeting, &arrival);
}

/* Its arrivals in the loop_divergence, and those that others may yet be compared with, learn what
 * the iteration was. */
static void end_lap(struct member *member, uint32_t micro_steps)
{
    struct loop_divergence *loop_divergence = member->comm->loop_divergence;
    lockstep_end_lap(member, micro_steps);
    for (int i = 0; loop_divergence && i < loop_divergence->sides; i++)
        if (loop_divergence->side[i].example.member == member &&
            loop_divergence->side[i].example.loop.iteration == member->lap[0].iteration)
            loop_divergence->side[i].example.micro_steps = micro_steps;
}

static void lockstep_on_iteration(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    const struct loop *loop = &thread->loop;
    for (struct member *member = thread->process->members; member; member = member->process_next) {
        struct comm *comm = member->comm;
        if (member->lap[0].owner != thread || member->lap[0].iteration != loop->ordinal)
            continue;
        end_lap(member, loop->micro_steps ? loop->micro_steps : loop->backwards);
        if (comm->loop_divergence && see_totals(comm->loop_divergence))
            lockstep_report(analyzer, comm);
    }
}

const struct check check_incomplete_iteration = {
    .code = DC504,
    .name = "incomplete-iteration",
    .family = FAMILY_TRAINING,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_MARKS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_WHY),
    .title = "a new iteration began before the previous iteration's reduction was complete",
    .text =
        "At one operation of a communicator some ranks are in one iteration and others already in "
        "the next, which they began with fewer operations than an iteration usually has. Their "
        "peers reduce the rest of the old iteration with what those ranks send for the new one. "
        "DistributedDataParallel reports the same as \"Expected to have finished reduction in the "
        "prior iteration\".\n\n"
        "It shows as a hang or as wrong results if the calls differ. If they match, there is no "
        "error: gradients of two iterations are averaged, and a hang comes at the end of the "
        "epoch. Usual causes: a rank skips its backward (an out-of-memory error that is caught, a "
        "bad batch), parameters that got no gradient on some ranks, two forward passes before one "
        "backward.\n\n"
        "Iterations come from NVTX ranges (docs/nvtx.md). Without any, the repeating pattern of "
        "the communicator's operations is used, after three equal rounds: then it is reported if a "
        "rank begins the next round while the others still reduce, and the calls do not match; "
        "otherwise the same fault shows as DC101, DC102, DC201 or DC206. It is certain if the "
        "calls themselves do not match, otherwise possible: the names could be wrong. It is "
        "reported only after two iterations in which all ranks agreed, and not if a rank makes a "
        "call too many, if records were lost (DC901), or for threads that are in no iteration.",
    .example = "if (loss_is_finite)          /* on one rank only */\n    "
               "backward_and_reduce(model, comm);\n",
    .fix_c = "if (!loss_is_finite)\n    zero_gradients(model);   /* take part with zeros "
             "*/\nbackward_and_reduce(model, comm);\n",
    .fix_torch = "with torch.cuda.nvtx.range(f'iteration {i}'):\n    loss = model(x).sum()\n    if "
                 "skip_this_batch:\n        loss = loss * 0      # take part with zeros; "
                 "find_unused_parameters=True where parts go unused\n    loss.backward()\n",
    .on = {[EVENT_OPERATION] = lockstep_on_operation, [EVENT_ITERATION] = lockstep_on_iteration},
};

const struct check check_different_micro_steps = {
    .code = DC505,
    .name = "different-micro-steps",
    .family = FAMILY_TRAINING,
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_MARKS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_WHY),
    .title = "ranks accumulate gradients in different micro-steps, or reduce in every one",
    .text = "Gradients are accumulated over several micro-steps and should be reduced once, after "
            "the last, by all ranks at the same one. Either some ranks reduce after another "
            "micro-step than the others, so that sums of different parts of the batch are "
            "averaged; or all ranks reduce in every micro-step, which gives the same result and "
            "costs several times the communication.\n\n"
            "The first shows as slightly wrong gradients, or as a hang when one rank runs out of "
            "operations; the second as lost time. Usual causes: no_sync() that depends on the rank "
            "or on its data, an incomplete last group of micro-batches, no_sync() forgotten.\n\n"
            "Micro-steps come from NVTX ranges (\"micro_step\", otherwise backward passes) inside "
            "an iteration's range. It is possible, never certain, unless the calls themselves do "
            "not match: the names could be wrong. Reducing in every micro-step is reported only if "
            "micro-steps are named, or from three backward passes per optimizer step on: two are "
            "usual for the discriminator of a GAN.",
    .example =
        "for (int micro = 0; micro < 4; micro++) {\n    backward(micro);\n    "
        "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclSum, comm, stream);\n}\nstep();\n",
    .fix_c = "for (int micro = 0; micro < 4; micro++)\n    backward(micro);         /* adds to "
             "gradients */\nncclAllReduce(gradients, gradients, n, ncclFloat, ncclSum, comm, "
             "stream);\nstep();\n",
    .fix_torch = "for i, (x, y) in enumerate(micro_batches):\n    last = i == len(micro_batches) - "
                 "1\n    with contextlib.nullcontext() if last else model.no_sync():\n        "
                 "loss(model(x), y).backward()\noptimizer.step()\n",
};

const struct check check_model_order = {
    .code = DC507,
    .name = "model-order",
    .family = FAMILY_TRAINING,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_WHY),
    .title = "two models share a communicator and reduce in different orders",
    .text = "The reductions of two models go through one communicator. Its operations are one "
            "sequence, so the ranks must interleave the two models in the same order. Here one "
            "rank reduces the first model where another is at the second: at its reduction or, if "
            "the calls do not match, at the Broadcast of its buffers.\n\n"
            "It shows as a hang or wrong results if the sizes differ; if they are equal, the two "
            "models get each other's gradients without any error. Usual causes: two "
            "DistributedDataParallel modules with the default process group and backward passes "
            "whose order depends on the rank, or two threads.\n\n"
            "The models come from the names of NVTX ranges (\"generator backward\", "
            "\"discriminator reduce\"). It is reported when both sides have reached the other's "
            "model as well, in the same iteration. It is certain if the calls themselves do not "
            "match, otherwise possible: the names could be wrong.",
    .example = "reduce(rank == 0 ? generator : discriminator, comm);\nreduce(rank == 0 ? "
               "discriminator : generator, comm);\n",
    .fix_c = "ncclCommSplit(comm, 0, rank, &comm_generator, NULL);     /* a communicator each "
             "*/\nreduce(generator, comm_generator);\nreduce(discriminator, comm);\n",
    .fix_torch = "generator = DDP(generator, process_group=dist.new_group())\ndiscriminator = "
                 "DDP(discriminator, process_group=dist.new_group())\n",
};
