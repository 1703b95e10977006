/* model_order.c: DC507: two models share a communicator, and ranks reduce them in another order. */
#include "analyzer/checks/training/loop_report.h"
#include "analyzer/match/window.h"
#include "analyzer/model/process.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

static struct act describe_model(const struct loop_divergence *loop_divergence,
                                 const struct arrival *arrival)
{
    (void)loop_divergence;
    const char *phase = site_phase(&arrival->site);
    return (struct act){.did = *phase ? DID_IN_MODEL : DID_IN_OTHER_MODEL, .phase = phase};
}

static void say_model(struct draft *draft, const struct loop_divergence *loop_divergence)
{
    (void)loop_divergence;
    draft_headline(draft, HEADLINE_MODEL_ORDER, ADVICE_MODEL_ORDER, NULL);
}

const struct loop_divergence_rule model_order_rule = {&check_model_order, describe_model,
                                                      say_model};

const struct check check_model_order = {
    .code = DC507,
    .name = "model-order",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CUDA,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_WHY),
    .title = "two models share a communicator and reduce in different orders",
    .text = "The reductions of two models go through one communicator. Its operations are one "
            "sequence, so the ranks must interleave the two models in the same order. Here one "
            "rank reduces the first model where another is at the second: at its reduction or, if "
            "the calls do not match, at the Broadcast of its buffers.\n\n"
            "It shows as a hang or wrong results if the sizes differ; if they are equal, the two "
            "models get each other's gradients without any error.\n\n"
            "The models come from the names of NVTX ranges (\"generator backward\", "
            "\"discriminator reduce\"). It is reported when both sides have reached the other's "
            "model as well, in the same iteration. It is certain if the calls themselves do not "
            "match, otherwise possible: the names could be wrong.",
    .causes = CAUSES({"Two DistributedDataParallel modules with the default process group, and "
                      "backward passes whose order depends on the rank or on data.",
                      "Both calls of a rank have one thread, and a branch is between them."},
                     {"Each model is trained by a thread of its own.",
                      "The two models' calls of a rank have different threads."},
                     {"One backward pass reaches both models (a GAN's generator loss through the "
                      "discriminator), whose reducers become ready in any order.",
                      "Both reductions are within one backward: run the other model's forward and "
                      "this backward under its no_sync(), and zero its gradients afterwards."}),
    .source = "PyTorch 2.10 documentation, \"Distributed Data Parallel\", Internal Design; NCCL "
              "2.29 user guide, \"Using multiple NCCL communicators concurrently\"",
    .example = "reduce(rank == 0 ? generator : discriminator, comm);\nreduce(rank == 0 ? "
               "discriminator : generator, comm);\n",
    .fix_c =
        "reduce(generator, comm);         /* in one order on every rank: */\n"
        "reduce(discriminator, comm);     /* two communicators would need it as well (DC204) */\n",
    .fix_torch =
        "generator_loss.backward()           # in one order on every rank, from one thread;\n"
        "discriminator_loss.backward()       # separate process groups need one order, too\n",
};
