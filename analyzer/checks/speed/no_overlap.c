/* no_overlap.c: DC603: communication waits for the end of backward although it could begin before.
 */
#include "analyzer/checks/training/tally.h"
#include "analyzer/model/comm.h"
#include "lib/trace/lacks.h"

enum {
    OVERLAP_ITERATIONS = 3,  /* in a row */
    OVERLAP_BYTES = 4 << 20, /* per iteration: less is through in a fraction of a millisecond */
    OVERLAP_REDUCTIONS = 2   /* one bucket can't begin before backward is over */
};

static void check_overlap(struct analyzer *analyzer, const struct thread *thread,
                          const struct member *member, struct tally *tally)
{
    const struct loop *loop = &thread->loop;
    bool could = loop->backwards && tally->reductions >= OVERLAP_REDUCTIONS &&
                 tally->bytes >= OVERLAP_BYTES && tally_steps(loop);
    tally->waits = could && !tally->overlapped ? tally->waits + 1 : 0;
    if (tally->waits < OVERLAP_ITERATIONS)
        return;
    const struct values values = {.value = {tally->reductions, (int64_t)tally->bytes}};
    tally_report(analyzer, &check_no_overlap, DID_REDUCES_LATE, member, tally, HEADLINE_NO_OVERLAP,
                 ADVICE_NO_OVERLAP, &values);
}

static void overlap_on_iteration(struct analyzer *analyzer, const struct event *event)
{
    struct thread *thread = event->thread;
    for (struct member *member = thread->process->members; member; member = member->process_next) {
        struct tally *tally = tally_finished(analyzer, thread, member);
        if (tally)
            check_overlap(analyzer, thread, member, tally);
    }
}

const struct check check_no_overlap = {
    .code = DC603,
    .name = "no-overlap",
    .severity = SEVERITY_NOTE,
    .scope = SCOPE_PROCESS,
    .needs = LACKS_TIMING,
    .title = "communication does not overlap with backward although it could",
    .text =
        "In three iterations in a row all reductions were issued after the backward pass was done, "
        "though there are several and they are large (4 MiB together or more). The first of them "
        "could have run during backward.\n\n"
        "It shows as lost time only.\n\n"
        "Backward passes come from NVTX ranges, so the program must have some. If the reductions "
        "depend on all gradients (clipping by the global norm before them), nothing can be gained.",
    .causes = CAUSES({"Gradients are reduced by your own code after loss.backward().",
                      "The calls' lines are behind backward(), not in a hook."},
                     {"One bucket for everything (a large bucket_cap_mb), or a hook that waits for "
                      "the last gradient.",
                      "The calls are the reducer's, and few."},
                     {"torch.compile of the whole model: backward is one compiled operation, and "
                      "DDP's hooks run at its end unless DDPOptimizer splits it "
                      "(torch._dynamo.config.optimize_ddp, on by default).",
                      "The model is compiled; TORCH_LOGS=ddp_graphs shows how it was split."}),
    .source = "Li et al., \"PyTorch Distributed: Experiences on Accelerating Data Parallel "
              "Training\", VLDB 2020, section 3.2.3 (overlapping computation with communication)",
    .example = "backward(loss);\nfor (int b = 0; b < buckets; b++)\n    ncclAllReduce(bucket[b], "
               "bucket[b], count[b], ncclFloat, ncclAvg, comm, communication);\n",
    .fix_c = "/* in the hook of the last gradient of bucket b, while backward goes on: "
             "*/\ncudaEventRecord(filled[b], compute);\ncudaStreamWaitEvent(communication, "
             "filled[b], 0);\nncclAllReduce(bucket[b], bucket[b], count[b], ncclFloat, ncclAvg, "
             "comm, communication);\n",
    .fix_torch =
        "model = DistributedDataParallel(model)      # reduces each bucket as soon as it is full\n",
    .on = {[EVENT_ITERATION] = overlap_on_iteration},
};
