/* more_work.c: DC605: ranks make the others wait, because they have more work. */
#include <math.h>

#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

/* The kind of work that is more, unless named kernels show it by their sizes. */
static void set_factors(struct values *values, const struct slowdown *slowdown)
{
    static const char *const words[MORE_KINDS] = {
        [MORE_KERNELS] = "kernels",
        [MORE_THREADS] = "threads in its kernels",
        [MORE_OPERATIONS] = "operations",
        [MORE_BYTES] = "bytes in its operations",
    };
    int factors = 0;
    for (int i = 0; i < MORE_KINDS; i++) {
        if (!(slowdown->more[i] > 0) || isinf(slowdown->more[i]))
            continue;
        bool has_copies = i == MORE_KERNELS && slowdown->rank[0]->shows_kernels;
        values->amount[SLOW_AMOUNT_OWN + factors] = slowdown->more[i];
        values->name[SLOW_NAME_OWN + factors++] = has_copies ? "kernels and copies" : words[i];
    }
}

static void more_work_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    const struct slowdown *slowdown = event->slowdown;
    struct values values = {0};
    if (slowdown->kind != SLOW_WORK)
        return;
    bool is_in_kernels = slowdown->work > 1 && slowdown->kernel[0];
    if (is_in_kernels)
        values.amount[SLOW_AMOUNT_OWN] = slowdown->work;
    else
        set_factors(&values, slowdown);
    slowdown_report(analyzer, &check_more_work, slowdown, DID_MORE_WORK,
                    is_in_kernels ? HEADLINE_MORE_IN_KERNELS : HEADLINE_MORE_WORK, ADVICE_MORE_WORK,
                    &values);
}

static void more_work_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_more_work, event->slowdown);
}

const struct check check_more_work = {
    .code = DC605,
    .name = "more-work",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS,
    .title = "a rank has more work than its peers",
    .text = "A rank's own time, without waiting for others, is longer than that of its peers (see "
            "DC601), and its work differs. It may have more kernels, operations or bytes, or "
            "kernels with more threads. `ddpcheck run --timing` names them, and has the bytes of "
            "copies. Or some of its kernels take longer and others do not, like those "
            "whose cost grows with the length of a sequence.\n\n"
            "It shows as a job that is slower than its GPUs.\n\n"
            "Peers are the members of a communicator that holds no two stages of a pipeline. "
            "Stages are not compared with each other: they are different by design.",
    .causes = CAUSES(
        {"Longer sequences or larger images on that rank.",
         "Attention kernels are longer, the others are not."},
        {"A larger batch: the last one, or a remainder.", "It has more kernels."},
        {"Experts that get more tokens than others.", "Its part of AlltoAll has more bytes."},
        {"Work for rank 0 alone on the GPU: metrics, samples.",
         "It has kernels that no other rank has."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example =
        "size_t tokens = rank == 1 ? 3 * mean_tokens : mean_tokens;   /* as the batch happened to "
        "be */\n"
        "forward_and_backward(batch, tokens, stream);\n"
        "ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);    /* all wait for rank 1 */\n",
    .fix_c = "sort_by_length_and_deal_out(batches);                        /* similar sequences on "
             "all ranks */\n"
             "forward_and_backward(batch, tokens, stream);\n"
             "ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);\n",
    .fix_torch =
        "# Batches by number of tokens, not of samples: lengths are similar on all ranks.\n"
        "sampler = LengthGroupedSampler(dataset, tokens_per_batch=8192)\n",
    .on = {[EVENT_SLOWDOWN] = more_work_on_slowdown, [EVENT_JUDGED] = more_work_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
