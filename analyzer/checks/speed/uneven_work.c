/* uneven_work.c: DC609: peers have different amounts of work, now one, now another. */
#include "analyzer/speed/slow_finding.h"
#include "lib/trace/lacks.h"

static void uneven_work_on_slowdown(struct analyzer *analyzer, const struct event *event)
{
    if (event->slowdown->kind == SLOW_UNEVEN)
        slowdown_report(analyzer, &check_uneven_work, event->slowdown, DID_UNEVEN,
                        HEADLINE_UNEVEN_WORK, ADVICE_UNEVEN_WORK, NULL);
}

static void uneven_work_on_judged(struct analyzer *analyzer, const struct event *event)
{
    slowdown_withdraw(analyzer, &check_uneven_work, event->slowdown);
}

const struct check check_uneven_work = {
    .code = DC609,
    .name = "uneven-work",
    .severity = SEVERITY_WARNING,
    .scope = SCOPE_JOB,
    .needs = LACKS_STATE | LACKS_DURATIONS,
    .title = "work is uneven, now here, now there",
    .text = "In each iteration another rank has the most work, and the others wait for it. No rank "
            "is slow: on average all have as much. Each iteration is simulated again with the work "
            "shared out evenly among peers; what it is shorter by is what the unevenness costs.\n\n"
            "It shows as waiting that is spread over all ranks.\n\n"
            "It is reported from 3% of an iteration on, in imported timelines and profiles with "
            "kernels. On the host of a recorded job other programs have the same effect.",
    .causes = CAUSES(
        {"Sequences of different lengths, dealt out at random.",
         "The kernels of attention vary most: their work grows with the square of the length."},
        {"A router sends more tokens to some experts.", "The kernels between two AllToAll vary."},
        {"Data that takes different work: images of different sizes, graphs.",
         "Kernels have different numbers of threads from iteration to iteration."}),
    .source = "ddpcheck: measured, no rule of a library",
    .example = "for (int i = 0; i < iterations; i++) {\n"
               "    forward_backward(batch[i]);       /* 2,000 tokens on one rank, 9,000 on "
               "another */\n"
               "    ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);\n"
               "}\n",
    .fix_c = "sort_by_length(batches);              /* batches of one iteration take as long */\n"
             "for (int i = 0; i < iterations; i++) {\n"
             "    forward_backward(batch[i]);\n"
             "    ncclAllReduce(g, g, n, ncclFloat, ncclAvg, comm, stream);\n"
             "}\n",
    .fix_torch = "sampler = LengthGroupedSampler(dataset, tokens_per_batch=8192)\n",
    .on = {[EVENT_SLOWDOWN] = uneven_work_on_slowdown, [EVENT_JUDGED] = uneven_work_on_judged},
    .state_bytes = {[OWNER_JOB] = sizeof(struct slow_reported)},
    .state_end = {[OWNER_JOB] = slow_reported_free},
};
