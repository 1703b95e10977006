/* slow_host.c: DC601: ranks make the others wait, because their host issues late. */
#include "analyzer/speed/gaps.h"
#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

enum { GAPS_LEAST = 10 }; /* what comes more rarely belongs to no iteration */

static enum headline reason_of(const struct slowdown *slowdown)
{
    if (slowdown->starving.is_cause)
        return HEADLINE_SLOW_STARVED;
    return slowdown->kind_is_guess ? HEADLINE_SLOW_UNKNOWN : HEADLINE_SLOW_HOST;
}

static void slow_host_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    struct slowdown found = *event->slowdown;
    const struct slowdown *slowdown = &found;
    if (slowdown->kind != SLOW_HOST)
        return;
    speed_find_gap(analyzer->slot.speed, 0, GAPS_LEAST, &found);
    const struct values values = {
        .amount = {[SLOW_AMOUNT_OWN] = slowdown->gap ? slowdown->gap_each : 0}};
    slowdown_report(analyzer, &check_slow_host, slowdown, DID_ISSUES_LATE, reason_of(slowdown),
                    slowdown->starving.is_cause ? ADVICE_SLOW_STARVED : ADVICE_SLOW_HOST, &values);
}

static void slow_host_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_slow_host, event->slowdown);
}

const struct check check_slow_host = {
    .code = DC601,
    .name = "slow-host",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS,
    .title = "a rank is late because its host issues late",
    .text =
        "A collective ends on all ranks together, soon after its last rank has arrived. So each "
        "rank's own durations show how long it waited, and the rank that waits least while the "
        "others wait more is the one they wait for. The rest of an iteration, without waiting, is "
        "a rank's own time. Here it is longer than that of its peers, and the GPU is idle in it: "
        "no kernel runs and no operation is queued. So the host is late.\n\n"
        "It shows as a job that is slower than its GPUs.\n\n"
        "Where calls are recorded, two lines are shown: the last call before the longest recurring "
        "pause in the process's calls, and the first call after it. The time passes between the "
        "two. In recorded jobs the time that threads wait for a processor is known as well: where "
        "that "
        "is at least half of what is lost, the finding says so instead.\n\n"
        "Nothing is reported below 3% of an iteration, or without 20 iterations. Clocks of hosts "
        "are never compared. Waiting that is hidden behind compute costs nothing and does not "
        "count, as far as the records have compute (a profiler's trace, a timeline). A source "
        "without the times of calls and kernels can't distinguish a late host from a slow GPU; the "
        "finding then says so.",
    .causes = CAUSES(
        {"The data loader is too slow, or its worker processes compete for processors.",
         "The time is spent before forward; more workers make it shorter."},
        {"Logging, evaluation, checkpoints or a profiler on rank 0.",
         "Only rank 0 is late; every n steps: DC608.",
         {.did = SIGN_DID(DID_ISSUES_LATE), .rank_0_alone = true}},
        {"A host wait in every step: .item(), .cpu(), print of a tensor.",
         "The rank's stack is in a synchronization."},
        {"Its threads wait for a processor: the CPU limit of its container, too many workers "
         "of the data loader, another job on its processors.",
         "The finding says for how long they waited."},
        {"A slower host: its processors' clock, swapping, another job.",
         "All ranks of one host are late."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "if (rank == 0)\n    write_samples();             /* 50 ms in every iteration "
               "*/\nncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "if (rank == 0)\n    hand_samples_to_a_thread();\nncclAllReduce(x, x, n, ncclFloat, "
             "ncclSum, comm, stream);\n",
    .fix_torch =
        "if rank == 0 and step % 100 == 0:   # rarely, or in another process\n    save_samples()\n",
    .on = {[EVENT_SLOWDOWN] = slow_host_on_slowdown, [EVENT_JUDGED] = slow_host_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
