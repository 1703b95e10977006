/* more_work.c: DC605: ranks make the others wait, because they have more work. */
#include <math.h>

#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

/* Of what there is more, unless it is shown by the sizes of kernels that are named. */
static void add_factors(struct text *what, const struct slowdown *slowdown)
{
    static const char *const words[MORE_KINDS] = {
        [MORE_KERNELS] = "kernels", /* those that are timed: and copies */
        [MORE_THREADS] = "threads in its kernels",
        [MORE_OPERATIONS] = "operations",
        [MORE_BYTES] = "bytes in its operations",
    };
    const char *before = ", ";
    for (int i = 0; i < MORE_KINDS; i++) {
        if (!(slowdown->more[i] > 0) || isinf(slowdown->more[i]))
            continue;
        text_add(what, "%s", before);
        slowdown_add_factor(what, slowdown->more[i]);
        bool has_copies = i == MORE_KERNELS && slowdown->rank[0]->shows_kernels;
        text_add(what, " as many %s%s", words[i], has_copies ? " and copies" : "");
        before = " and ";
    }
}

static void more_work_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    const struct slowdown *slowdown = event->slowdown;
    struct text what = {0};
    if (slowdown->kind != SLOW_WORK)
        return;
    slowdown_add_ranks(&what, slowdown);
    text_add(&what, slowdown->ranks == 1 ? " has more work than its peers"
                                         : " have more work than their peers");
    if (slowdown->work > 1 && slowdown->kernel[0]) {
        text_add(&what, ", ");
        slowdown_add_factor(&what, slowdown->work);
        text_add(&what, " as much in its kernels and copies");
    } else {
        add_factors(&what, slowdown);
    }
    slowdown_add_kernels(&what, analyzer, slowdown);
    text_add(&what, ", and the others wait ");
    slowdown_add_loss(&what, slowdown);
    slowdown_report(
        analyzer, &check_more_work, slowdown, DID_MORE_WORK, &what,
        "Share the work evenly: batches of equal size, sequences of similar length, layers of "
        "equal cost in the stages of a pipeline.");
}

static void more_work_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_more_work, event->slowdown);
}

const struct check check_more_work = {
    .code = DC605,
    .name = "more-work",
    .family = FAMILY_SPEED,
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
};
