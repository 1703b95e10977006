/* different_graphs.c: DC115: replays of graphs that share a communicator without an order, where
 * NCCL does not order them; a graph on some ranks only is found by different_configs.c. */
#include <string.h>

#include "analyzer/environment/settings.h"
#include "analyzer/findings.h"
#include "analyzer/model/comm.h"
#include "analyzer/model/process.h"
#include "lib/trace/lacks.h"
#include "lib/trace/names.h"

/* NCCL_GRAPH_MIXING_SUPPORT=0 promises that the program orders them (user guide, "Environment
 * Variables"); by default NCCL does. */
static bool nccl_orders_them(const struct process *process)
{
    char text[SETTING_TEXT_BYTES];
    const char *mixing = settings_value(process, "NCCL_GRAPH_MIXING_SUPPORT", text);
    return !mixing || strcmp(mixing, "0") != 0;
}

static void graphs_on_operation(struct analyzer *analyzer, const struct event *event)
{
    const struct operation *operation = event->operation;
    if (!operation->is_unordered || nccl_orders_them(operation->process))
        return;
    struct draft draft = draft_new(&check_different_graphs, CERTAIN, operation->member->comm);
    draft.merges_ranks = true;
    draft.finding.number = operation->record.op.number;
    draft.finding.has_number = true;
    draft.finding.first_ns = draft.finding.last_ns = operation->site.time_ns;
    draft_rank(&draft, draft_side_record(&draft, &operation->record, &operation->site),
               operation->member);
    const struct values values = {.call = {call_of_api(operation->record.api)}};
    draft_headline(&draft, HEADLINE_UNORDERED_REPLAYS, ADVICE_UNORDERED_REPLAYS, &values);
    findings_report(analyzer, &draft, NULL);
}

const struct check check_different_graphs = {
    .code = DC115,
    .name = "different-graphs",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .off_without = LOSS_CALLS,
    .needs = LACKS_CALLS | LACKS_CUDA,
    .explains = CODES(CODES_HANGS),
    .title = "CUDA graphs launch a communicator's collectives on some ranks only, or unordered",
    .text =
        "Whether an operation is launched by a CUDA graph must be the same on all ranks that take "
        "part in it, and launching such a graph is collective. Here one rank replays the operation "
        "from a graph, and another calls it. It is reported once the next operation shows that no "
        "rank made a call too many, which looks like it.\n\n"
        "Or a rank launches two graphs with operations of one communicator on two streams without "
        "an order, although NCCL_GRAPH_MIXING_SUPPORT=0 promises NCCL that the program orders "
        "them. Without that setting NCCL orders them itself, and nothing is reported.\n\n"
        "It shows as a hang or as wrong values, often only after a change of sizes or of NCCL's "
        "version: NCCL registers buffers and chooses algorithms for captured operations in "
        "another way.",
    .causes = CAUSES({"A fallback to eager mode on the rank that sees a new shape.",
                      "The rank that calls it has another batch size or sequence length."},
                     {"Warm-up iterations before the capture that differ between ranks.",
                      "The difference begins at the first operation after the capture."}),
    .source = "NCCL 2.32 user guide, \"Using NCCL with CUDA Graphs\" (\"must be uniform over all "
              "ranks participating in the launch\") and \"Environment Variables\", "
              "NCCL_GRAPH_MIXING_SUPPORT",
    .example = "if (rank == 0) cudaGraphLaunch(graph, stream);      /* holds an ncclAllReduce */\n"
               "else ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_c = "cudaGraphLaunch(graph, stream);      /* captured and launched on every rank */\n",
    .fix_torch =
        "use_graph = torch.tensor([shape in graphs], device=\"cuda\")\n"
        "dist.all_reduce(use_graph, op=dist.ReduceOp.MIN)    # one decision for all ranks\n",
    .on = {[EVENT_OPERATION] = graphs_on_operation},
};
