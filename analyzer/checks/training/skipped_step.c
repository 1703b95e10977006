/* skipped_step.c: DC506: some ranks made a step of the optimizer and others did not, as NVTX ranges
 * of iterations and steps show. Reported when the iteration's range ends. */
#include <errno.h>

#include "analyzer/checks/training/tally.h"
#include "analyzer/states.h"
#include "analyzer/loop/vote_rounds.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

/* --- while the iteration goes on --- */

static void vote_rounds_end(void *state)
{
    vote_rounds_clear(state);
}

static struct act optimizer_step_act(const struct vote_round_side *side, const char *name)
{
    if (side->count <= 1)
        return (struct act){.did = side->count ? DID_ONE_STEP : DID_NO_STEP, .name = name};
    return (struct act){.did = DID_STEPS, .number = side->count, .name = name};
}

static void report_steps(struct analyzer *analyzer, const struct comm *comm,
                         struct vote_round *vote_round, const struct vote *vote)
{
    const struct process *process = vote->member->process;
    const char *name = process_string(process, vote_round->text);
    struct draft draft = draft_new(&check_skipped_step, POSSIBLE, comm);
    for (int i = 0; i < vote_round->sides; i++) {
        const struct vote_round_side *from = &vote_round->side[i];
        const struct act act = optimizer_step_act(from, *name ? name : "step");
        struct finding_side *side = draft_side(&draft, &act, &from->site);
        for (uint32_t k = 0; k < comm->members; k++)
            if (rankset_has(&from->ranks, comm->member[k]->rank))
                draft_rank(&draft, side, comm->member[k]);
        if (!draft.finding.first_ns || from->site.time_ns < draft.finding.first_ns)
            draft.finding.first_ns = from->site.time_ns;
        if (from->site.time_ns > draft.finding.last_ns)
            draft.finding.last_ns = from->site.time_ns;
    }
    draft_cover_comm(&draft, comm);
    const struct values values = {.value = {(int64_t)vote_round->key}};
    draft_headline(&draft, HEADLINE_SKIPPED_STEP, ADVICE_SKIPPED_STEP, &values);
    if (vote_round->finding) {
        findings_replace(analyzer, vote_round->finding, &draft);
        return;
    }
    findings_report(analyzer, &draft, &vote_round->finding);
}

/* Of its last step; without one, where it reduced last: there the step should follow. */
static struct site step_site(struct thread *thread, const struct loop_steps *steps,
                             const struct tally *tally)
{
    if (!steps->count)
        return tally->site;
    return (struct site){
        .process = thread->process,
        .phase = steps->text,
        .stack = steps->stack,
        .stack_is_address = steps->stack_is_address,
        .time_ns = steps->time_ns,
    };
}

/* Only optimizers that this rank has stepped before: ranks may well have optimizers of their own.
 */
static void compare_steps(struct analyzer *analyzer, struct thread *thread, struct member *member,
                          const struct tally *tally)
{
    const struct loop *loop = &thread->loop;
    bool numbered = loop->has_iterations && loop->range.meaning.has_number;
    for (uint32_t i = 0; i < loop->steps_count && loop->has_iterations; i++) {
        struct vote vote = {
            .member = member,
            .numbered = numbered,
            .key = numbered ? loop->range.meaning.number : member->laps.count,
            .model = loop->steps[i].model,
            .text = loop->steps[i].text,
            .backwards = loop->backwards,
            .count = loop->steps[i].count,
            .site = step_site(thread, &loop->steps[i], tally),
        };
        struct vote_rounds *vote_rounds =
            state_get(analyzer, &check_skipped_step, OWNER_COMM, &member->comm->states);
        struct vote_round *vote_round =
            vote_rounds ? vote_rounds_enter(vote_rounds, member->comm, &vote) : NULL;
        if (vote_rounds && !vote_round && errno == ENOMEM) {
            analyzer->failed = true;
            return;
        }
        if (vote_round && vote_round->sides > 1)
            report_steps(analyzer, member->comm, vote_round, &vote);
    }
}

/* --- DC505, DC603: what one rank does in every iteration --- */

static void steps_on_iteration(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    for (struct member *member = thread->process->members; member; member = member->process_next) {
        struct tally *tally = tally_finished(analyzer, thread, member);
        if (tally)
            compare_steps(analyzer, thread, member, tally);
    }
}

const struct check check_skipped_step = {
    .code = DC506,
    .name = "skipped-step",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CUDA,
    .needs = LACKS_MARKS,
    /* on several communicators: one finding */
    .explains_later = CODES(CODES_LOOPS, DC503),
    .title = "some ranks skipped a step of the optimizer",
    .text = "All ranks reduced their gradients in an iteration, but some ranks then did not step "
            "an optimizer that all of them had stepped before. From then on their parameters "
            "differ, and every later gradient is computed on different models.\n\n"
            "It shows as a loss that differs between ranks and as training that slowly gets worse. "
            "The usual cause is mixed precision with an overflow that only one rank detects: "
            "gradients checked before the reduction, a scale kept per rank, a step skipped because "
            "of a local NaN.\n\n"
            "Steps and iterations come from NVTX ranges, so it is possible, never certain: a rank "
            "that steps without its range is reported by mistake. It is not reported for ranks "
            "that made a different number of backward passes in that iteration (they only join the "
            "others' collectives), for optimizers that a rank has never stepped, and if records "
            "were lost (DC901).",
    .causes =
        CAUSES({"A loss scale per rank that is not shared: FSDP1, ZeRO and tensor parallel need a "
                "sharded scaler (ShardedGradScaler); torch.amp.GradScaler itself reduces nothing "
                "and is right with DDP only because the gradients it checks are already equal.",
                "Which scaler class is used; whether unscale_ sees sharded gradients."},
               {"Gradients checked before the reduction, or a step skipped because of a local NaN "
                "or a local norm.",
                "The condition around optimizer.step(): reduce it with MAX first."}),
    .source = "PyTorch 2.10 documentation, \"Automatic Mixed Precision examples\"; PyTorch 2.10 "
              "source, torch/distributed/fsdp/sharded_grad_scaler.py",
    .example = "if (!overflow_here)          /* differs between ranks */\n"
               "    step(optimizer);\n",
    .fix_c = "ncclAllReduce(&overflow_here, &overflow, 1, ncclInt32, ncclMax, comm, stream);\nif "
             "(!overflow)\n    step(optimizer);\n",
    .fix_torch = "scaler.scale(loss).backward()       # DDP reduces here: afterwards all ranks "
                 "have the same gradients\n"
                 "scaler.unscale_(optimizer)          # so all see the same inf; FSDP and ZeRO: "
                 "ShardedGradScaler instead\n"
                 "scaler.step(optimizer)\n"
                 "scaler.update()\n",
    .on = {[EVENT_OPERATION] = tally_on_operation, [EVENT_ITERATION] = steps_on_iteration},
    .state_bytes =
        {[OWNER_MEMBER] = sizeof(struct tally), [OWNER_COMM] = sizeof(struct vote_rounds)},
    .state_end = {[OWNER_COMM] = vote_rounds_end},
};
