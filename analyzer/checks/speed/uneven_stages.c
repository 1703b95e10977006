/* uneven_stages.c: DC610: a stage of a pipeline has more work than the others. */
#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

static void uneven_stages_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    const struct values values = {.amount = {[SLOW_AMOUNT_OWN] = event->slowdown->ratio}};
    if (event->slowdown->kind == SLOW_STAGES)
        slowdown_report(analyzer, &check_uneven_stages, event->slowdown, DID_MORE_WORK,
                        HEADLINE_UNEVEN_STAGES, ADVICE_UNEVEN_STAGES, &values);
}

static void uneven_stages_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_uneven_stages, event->slowdown);
}

const struct check check_uneven_stages = {
    .code = DC610,
    .name = "uneven-stages",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS,
    .title = "the stages of a pipeline are uneven",
    .text =
        "A pipeline is as fast as its slowest stage, and the others wait for it. Each iteration "
        "is simulated again with as much work in each stage as all have on average; what it is "
        "shorter by is what the unevenness costs. The stage with the most work is named.\n\n"
        "It shows as stages that wait for messages although none is slow.\n\n"
        "Waiting at the beginning and at the end of an iteration (the bubble) is part of the "
        "pipeline and does not count. It is reported from 3% of an iteration on, where kernels "
        "are recorded.",
    .causes = CAUSES({"The last stage has the loss, or the output layer, beside its layers.",
                      "The ranks named are those with the highest numbers."},
                     {"The first stage has the embedding.", "The ranks named are the first."},
                     {"The number of layers can't be divided by the number of stages.",
                      "Some stages have one layer more."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "int layers[4] = {8, 8, 8, 8};         /* and the last one has the loss */\n"
               "ncclSend(x, n, ncclFloat, stage + 1, comm, stream);\n",
    .fix_c = "int layers[4] = {9, 8, 8, 7};         /* as much work in each stage */\n"
             "ncclSend(x, n, ncclFloat, stage + 1, comm, stream);\n",
    .fix_torch = "layers_of_stage = [9, 8, 8, 7]       # the last stage has the loss, too\n",
    .on = {[EVENT_SLOWDOWN] = uneven_stages_on_slowdown, [EVENT_JUDGED] = uneven_stages_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
