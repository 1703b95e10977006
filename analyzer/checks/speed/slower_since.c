/* slower_since.c: DC607: iterations became longer, from one on. */
#include <inttypes.h>

#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

static void add_change(struct text *what, const struct slowdown *slowdown)
{
    double before = slowdown->length - slowdown->lost;
    text_add(what, "since iteration %" PRIu64 " iterations take ", slowdown->since);
    slowdown_add_time(what, slowdown->length);
    text_add(what, " instead of ");
    slowdown_add_time(what, before);
    if (slowdown->until)
        text_add(what, ", until iteration %" PRIu64, slowdown->until);
    text_add(what, "; a later one is longer than an earlier one in %.3g%% of cases",
             100 * slowdown->confidence);
}

static void slower_since_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    const struct slowdown *slowdown = event->slowdown;
    struct text what = {0};
    if (slowdown->kind != SLOW_SINCE)
        return;
    if (slowdown->is_part) {
        text_add(&what, "%sthe work of all ranks takes longer: ",
                 slowdown->is_alone ? "" : "beside what other findings report, ");
        slowdown_add_loss(&what, slowdown);
    } else {
        add_change(&what, slowdown);
    }
    slowdown_report(
        analyzer, &check_slower_since, slowdown, DID_LONGER, &what,
        "See what changed then, on all ranks: input sizes, recompilation, logging, clocks, "
        "other jobs. Findings DC601 to DC606 say whether single ranks did.");
}

static void slower_since_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_slower_since, event->slowdown);
}

const struct check check_slower_since = {
    .code = DC607,
    .name = "slower-since",
    .family = FAMILY_SPEED,
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
};
