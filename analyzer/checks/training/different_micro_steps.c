/* different_micro_steps.c: DC505: ranks reduce after different micro-steps of an iteration
 * (loop_report.c finds it), or all reduce in every micro-step where once would do. */
#include "analyzer/checks/training/loop_report.h"
#include "analyzer/checks/training/tally.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

enum {
    EVERY_ITERATIONS = 2, /* in a row: an iteration that is different once is none */
    EVERY_BACKWARDS =
        3 /* without named micro-steps: two backward passes are what a GAN's discriminator does */
};

static struct act describe_micro(const struct loop_divergence *loop_divergence,
                                 const struct arrival *arrival)
{
    (void)loop_divergence;
    return (struct act){.did = DID_IN_MICRO_STEP, .number = arrival->loop.micro};
}

static void say_micro(struct draft *draft, const struct loop_divergence *loop_divergence)
{
    char iteration[LOOP_PLACE_BYTES];
    struct values values = {
        .name = {arrival_iteration_text(loop_divergence_example(loop_divergence, 0), iteration,
                                        sizeof iteration)}};
    for (int i = 0; i < loop_divergence->sides; i++)
        values.each[i] = loop_divergence_example(loop_divergence, i)->loop.micro;
    draft_headline(draft, HEADLINE_DIFFERENT_MICRO_STEPS, ADVICE_DIFFERENT_MICRO_STEPS, &values);
}

const struct loop_divergence_rule different_micro_steps_rule = {&check_different_micro_steps,
                                                                describe_micro, say_micro};

static void check_every(struct analyzer *analyzer, const struct thread *thread,
                        const struct member *member, struct tally *tally)
{
    const struct loop *loop = &thread->loop;
    uint32_t micro_steps = loop->micro_steps ? loop->micro_steps : loop->backwards;
    bool is_named = loop->micro_steps >= 2 || loop->backwards >= EVERY_BACKWARDS;
    bool every = is_named && tally->sets == micro_steps && tally->sets >= 2 && !tally->other_sets &&
                 tally_steps(loop) == 1;
    tally->every = every ? tally->every + 1 : 0;
    if (tally->every < EVERY_ITERATIONS)
        return;
    const struct values values = {.value = {tally->sets}};
    tally_report(analyzer, &check_different_micro_steps, DID_REDUCES_OFTEN, member, tally,
                 HEADLINE_EVERY_MICRO_STEP, ADVICE_EVERY_MICRO_STEP, &values);
}

static void micro_on_iteration(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    for (struct member *member = thread->process->members; member; member = member->process_next) {
        struct tally *tally = tally_finished(analyzer, thread, member);
        if (tally)
            check_every(analyzer, thread, member, tally);
    }
}

const struct check check_different_micro_steps = {
    .code = DC505,
    .name = "different-micro-steps",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CUDA,
    .needs = LACKS_MARKS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_WHY),
    .title = "ranks accumulate gradients in different micro-steps, or reduce in every one",
    .text = "Gradients are accumulated over several micro-steps and should be reduced once, after "
            "the last, by all ranks at the same one. Either some ranks reduce after a different "
            "micro-step than the others, so that sums of different parts of the batch are "
            "averaged; or all ranks reduce in every micro-step, which gives the same result and "
            "costs several times the communication.\n\n"
            "The first shows as slightly wrong gradients, or as a hang when one rank runs out of "
            "operations; the second as lost time.\n\n"
            "Micro-steps come from NVTX ranges (\"micro_step\", otherwise backward passes) inside "
            "an iteration's range. It is possible, never certain, unless the calls themselves do "
            "not match: the names could be wrong. Reducing in every micro-step is reported only if "
            "micro-steps are named, or from three backward passes per optimizer step on: two are "
            "usual for the discriminator of a GAN.",
    .causes = CAUSES(
        {"no_sync() that depends on the rank or on its data.",
         "The sides reduce after different micro-steps.",
         {.did = SIGN_DID(DID_IN_MICRO_STEP)}},
        {"An incomplete last group of micro-batches.", "Only the last iteration of an epoch."},
        {"no_sync() forgotten.",
         "All ranks reduce in every micro-step.",
         {.did = SIGN_DID(DID_REDUCES_OFTEN)}}),
    .source = "PyTorch 2.10 documentation, DistributedDataParallel.no_sync",
    .example =
        "for (int micro = 0; micro < 4; micro++) {\n    backward(micro);\n    "
        "ncclAllReduce(gradients, gradients, n, ncclFloat, ncclSum, comm, stream);\n}\nstep();\n",
    .fix_c = "for (int micro = 0; micro < 4; micro++)\n    backward(micro);         /* adds to "
             "gradients */\nncclAllReduce(gradients, gradients, n, ncclFloat, ncclSum, comm, "
             "stream);\nstep();\n",
    .fix_torch = "for i, (x, y) in enumerate(micro_batches):\n    last = i == len(micro_batches) - "
                 "1\n    with contextlib.nullcontext() if last else model.no_sync():\n        "
                 "loss(model(x), y).backward()\noptimizer.step()\n",
    .on = {[EVENT_ITERATION] = micro_on_iteration},
};
