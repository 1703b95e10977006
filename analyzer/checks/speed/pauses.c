/* pauses.c: DC608: ranks pause at regular intervals. */
#include "analyzer/speed/gaps.h"
#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

static void pauses_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    struct slowdown found = *event->slowdown;
    const struct slowdown *slowdown = &found;
    if (slowdown->kind != SLOW_PAUSE)
        return;
    speed_find_gap(analyzer->slot.speed, slowdown->each / 2, (slowdown->times + 1) / 2, &found);
    const struct values values = {
        .value = {[SLOW_VALUE_OWN] = (int64_t)slowdown->period},
        .flag = {[SLOW_FLAG_OWN] = slowdown->period_varies},
        .amount = {[SLOW_AMOUNT_OWN] = slowdown->each},
    };
    slowdown_report(analyzer, &check_pauses, slowdown, DID_PAUSES, HEADLINE_PAUSES, ADVICE_PAUSES,
                    &values);
}

static void pauses_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_pauses, event->slowdown);
}

const struct check check_pauses = {
    .code = DC608,
    .name = "pauses",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS,
    .title = "pauses at regular intervals",
    .text = "Every few iterations one takes much longer, on all ranks or on some, for which the "
            "others wait. At least four pauses at about equal distances are needed: irregular ones "
            "may be noise of the machine.\n\n"
            "It shows as steps that are slow now and then.\n\n"
            "Pauses of some ranks are seen in their own time, so ranks that only wait for them are "
            "not named. Where calls are recorded and most of a pause passes between two of them, "
            "both lines are shown: the program is busy with something else from one to the other.",
    .causes =
        CAUSES({"Checkpoints or evaluation every n steps.", "n is that of the program's options."},
               {"Python's garbage collector, at different times on each rank.",
                "Single ranks pause, in turn."},
               {"Logging that reads values from the GPU.", "n is the logging interval."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "if (i % 10 == 0)\n"
               "    write_checkpoint(parameters);                            /* on rank 0, for "
               "half a second */\n"
               "ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);\n",
    .fix_c = "if (i % 10 == 0)\n"
             "    hand_checkpoint_to_a_thread(parameters);\n"
             "ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);\n",
    .fix_torch = "gc.disable()                 # at the start, on all ranks\n"
                 "if step % 1000 == 0:\n"
                 "    gc.collect()             # and then on all ranks at once\n",
    .on = {[EVENT_SLOWDOWN] = pauses_on_slowdown, [EVENT_JUDGED] = pauses_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
