/* concurrent_operations.c: DC305: two operations that may run at the same time use overlapping
 * memory, and one writes.
 *
 * Operations on different streams run side by side unless something orders them. Calls of one
 * communicator in one ncclGroup are "performed within a single NCCL launch" (NCCL user guide,
 * "Aggregated Operations"), sends and receives of a group "progress at the same time": their order
 * in the group orders nothing. */
#include "analyzer/hazard/hazards.h"
#include "lib/trace/lacks.h"

/* A message of one element is a handshake where another is received into the same place: neither
 * value can be relied on, so nothing is lost. PyTorch's pipelining connects a stage's neighbours
 * so. */
static bool is_handshake(const struct flight *flight)
{
    return flight->record.api == API_ncclRecv && flight->record.op.count == 1;
}

static bool operations_apply(const struct conflict *conflict)
{
    const struct flight *a = conflict->earlier, *b = conflict->later;
    return a->kind == FLIGHT_OPERATION && b->kind == FLIGHT_OPERATION &&
           !(is_handshake(a) && is_handshake(b));
}

static enum certainty operations_certainty(const struct conflict *conflict)
{
    (void)conflict;
    return CERTAIN;
}

const struct hazard_rule hazard_operations = {
    &check_concurrent_operations, operations_apply,
    operations_certainty,         HEADLINE_CONCURRENT_OPERATIONS,
    ADVICE_CONCURRENT_OPERATIONS, NULL,
};

const struct check check_concurrent_operations = {
    .code = DC305,
    .name = "concurrent-operations",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_PROCESS,
    .off_without = LOSS_CALLS | LOSS_CUDA,
    .needs = LACKS_ADDRESSES | LACKS_CUDA,
    .explains = CODES(DC308, DC309),
    .explains_later = CODES(DC503),
    .title = "two operations that may run at the same time use the same memory",
    .text = "Two collectives, sends or receives use overlapping memory, at least one of them "
            "writes it, and nothing orders the two. They are on different streams with no event "
            "between them, or in one ncclGroup of one communicator, whose operations are one "
            "launch and run concurrently.\n\n"
            "It sometimes shows as parts of the buffer that are summed twice or not at all.\n\n"
            "It is certain: the ranges are exact. Two receives of one element to the same address "
            "are not reported: that is a handshake, whose value nobody uses.\n\n" HAZARD_ORDER_TEXT,
    .causes = CAUSES(
        {"Two process groups with streams of their own that reduce the same tensor one after the "
         "other, without a wait in between (hierarchical reductions, tensor and data parallel).",
         "The two operations belong to two communicators, and their streams differ."},
        {"A ring of sends and receives in one group that receives into what it still sends.",
         "Both are in one group: the ring needs two buffers that change places."},
        {"Buckets whose offsets overlap: a size in bytes taken for one in elements, or a bucket "
         "that is one element too long.",
         "The two ranges overlap in part only."}),
    .source = "NCCL 2.29 user guide, \"CUDA Stream Semantics\" and \"Group Calls\"",
    .example = "ncclReduceScatter(sum, part, n, ncclFloat, ncclSum, nodes, "
               "first);\nncclAllReduce(part, part, n, ncclFloat, ncclSum, rails, second);       /* "
               "while part is still being written */\n",
    .fix_c = "ncclReduceScatter(sum, part, n, ncclFloat, ncclSum, nodes, "
             "first);\ncudaEventRecord(scattered, first);\ncudaStreamWaitEvent(second, scattered, "
             "0);\nncclAllReduce(part, part, n, ncclFloat, ncclSum, rails, second);\n",
    .fix_torch = "dist.reduce_scatter_tensor(part, total, group=nodes, "
                 "async_op=True).wait()\ndist.all_reduce(part, group=rails)\n",
};
