/* slower_since.c: DC607: iterations became longer, from one on. */
#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

static void slower_since_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    const struct slowdown *slowdown = event->slowdown;
    if (slowdown->kind != SLOW_SINCE)
        return;
    const struct values values = {
        .flag = {[SLOW_FLAG_OWN] = slowdown->is_alone},
        .amount = {[SLOW_AMOUNT_OWN] = slowdown->length - slowdown->lost,
                   100 * slowdown->confidence},
    };
    slowdown_report(analyzer, &check_slower_since, slowdown, DID_LONGER,
                    slowdown->is_part ? HEADLINE_SLOWER_WORK : HEADLINE_SLOWER_SINCE,
                    ADVICE_SLOWER_SINCE, &values);
}

static void slower_since_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_slower_since, event->slowdown);
}

const struct check check_slower_since = {
    .code = DC607,
    .name = "slower-since",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS | LACKS_STARTS,
    .title = "iterations became slower",
    .text =
        "From some iteration on, iterations take longer. The change is placed where later and "
        "earlier iterations differ most, measured in standard errors; single long iterations "
        "(pauses) do not count. The finding says how often a later iteration is longer than an "
        "earlier one: 50% is chance, 100% always.\n\n"
        "It shows as a job that becomes slower.\n\n"
        "At least 20 iterations before and after the change are needed. A recorded job's host "
        "may be busy for a while, so there at least 30 iterations after it are needed, which "
        "take 5 s or more. If ranks became slower than their peers, findings DC601 to DC606 name "
        "them.",
    .causes = CAUSES(
        {"Clocks went down on all GPUs: power or cooling of the room.",
         "nvidia-smi -q -d PERFORMANCE."},
        {"Sequences grow longer: a curriculum, or sorted data.",
         "The number of bytes or kernels grows over time."},
        {"Memory is short: the allocator frees and allocates in every step.",
         "cudaMalloc and cudaFree appear in later iterations."},
        {"Another job began on the same network or file system.", "It ends when that job ends."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "for (int i = 0; i < n; i++) {\n"
               "    save_losses(all_losses_so_far, i);                       /* longer with every "
               "iteration */\n"
               "    ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);\n"
               "}\n",
    .fix_c = "for (int i = 0; i < n; i++) {\n"
             "    append_loss(file, loss);\n"
             "    ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);\n"
             "}\n",
    .fix_torch = "losses.append(loss.item())   # not: losses.append(loss), which keeps its graph\n",
    .on = {[EVENT_SLOWDOWN] = slower_since_on_slowdown, [EVENT_JUDGED] = slower_since_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
