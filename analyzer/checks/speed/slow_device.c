/* slow_device.c: DC604: ranks make the others wait, because their GPU takes longer for the same
 * work. */
#include "analyzer/model/process.h"
#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

/* Kernels that are not timed may differ. */
static enum headline cause_of(const struct slowdown *slowdown)
{
    if (slowdown->ratio > 0)
        return HEADLINE_SLOW_SAME_WORK;
    return slowdown->is_as_much ? HEADLINE_SLOW_AS_MUCH : HEADLINE_SLOW_DEVICE;
}

static void slow_device_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    const struct slowdown *slowdown = event->slowdown;
    if (slowdown->kind != SLOW_DEVICE)
        return;
    const struct speed_rank *rank = slowdown->rank[0];
    const struct values values = {
        .flag = {[SLOW_FLAG_OWN] = slowdown->starving.is_cause,
                 process_is_recorded(rank->key.process) && !rank->shows_kernels},
        .amount = {[SLOW_AMOUNT_OWN] = slowdown->ratio > 1 ? slowdown->ratio : 0},
    };
    slowdown_report(analyzer, &check_slow_device, slowdown, DID_SLOW_DEVICE, cause_of(slowdown),
                    ADVICE_SLOW_DEVICE, &values);
}

static void slow_device_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_slow_device, event->slowdown);
}

const struct check check_slow_device = {
    .code = DC604,
    .name = "slow-device",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS,
    .title = "a rank is late because its GPU is slow",
    .text =
        "A rank's own time, without waiting for others, is longer than that of its peers "
        "(see DC601). The GPU is busy in it: its kernels run longer, or "
        "operations wait in the queue behind them. It has as many kernels, operations and "
        "bytes as its peers, and, where kernels are timed, all are slow by the same factor, so it "
        "is the GPU and not the work.\n\n"
        "It shows as a job that is slower than most of its GPUs.\n\n"
        "Which kernels became slower is known with `ddpcheck run --timing`, and from profilers' "
        "traces and timelines. Without them kernels are only counted, with their threads: a rank "
        "whose "
        "kernels do more with as many threads looks the same.",
    .causes = CAUSES({"The GPU's clock is lower: heat, a power cap, a broken fan.",
                      "nvidia-smi -q -d PERFORMANCE names the reason (HW Slowdown, SW Power Cap)."},
                     {"Another program uses the GPU.", "nvidia-smi lists it."},
                     {"ECC errors, or memory pages that were retired.",
                      "nvidia-smi -q -d ECC,PAGE_RETIREMENT; dmesg shows Xid errors."},
                     {"Another model of GPU, or MIG.", "nvidia-smi -L on each host."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "/* nvidia-smi -q -d PERFORMANCE on the rank's host:\n"
               " *     HW Slowdown: Active     HW Thermal Slowdown: Active */\n",
    .fix_c = "/* The program is right; the GPU is not. Cool or exchange it, or start without that "
             "host. */\n",
    .fix_torch = "# Leave the host out until its GPU runs at full speed again:\n"
                 "#     torchrun --nnodes=7 ...\n",
    .on = {[EVENT_SLOWDOWN] = slow_device_on_slowdown, [EVENT_JUDGED] = slow_device_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
