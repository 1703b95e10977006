/* different_groups.c: DC106: the check for groups whose calls differ; the comparison is
 * different_operations.c's. */
#include "analyzer/check.h"
#include "lib/trace/lacks.h"

const struct check check_different_groups = {
    .code = DC106,
    .name = "different-groups",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_GROUP | LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_DIVERGED),
    .title = "the calls of one group differ in number or order",
    .text = "The calls between ncclGroupStart and ncclGroupEnd are launched as one. On two ranks "
            "the groups that begin at the same operation contain a different number of calls, or "
            "the same calls in a different order.\n\n"
            "It shows as a hang or as wrong results. A group on one rank against single calls on "
            "another is not reported: NCCL's documents neither allow nor forbid it.\n\n"
            "It can be wrong only if records were lost (DC901).",
    .causes = CAUSES({"Buffers are taken from a set, a dict or a list in the order of arrival, "
                      "which differs between ranks.",
                      "The groups contain the same calls in a different order."},
                     {"A branch inside the group: an empty message left out, a buffer that only "
                      "some ranks have.",
                      "One group has fewer calls; the missing one is the same in each step."},
                     {"A coalescing manager (torch.distributed, batch_isend_irecv) that gets a "
                      "different list on some ranks.",
                      "The calls have one source line: print the list's length on every rank."}),
    .source = "NCCL 2.29 user guide, \"Group Calls\"",
    .example = "for (int i = 0; i < 2; i++) /* rank 0: a, b; rank 1: b, a */\n    order[i] = "
               "rank ? 1 - i : i;\nncclGroupStart();\nfor (int i = 0; i < 2; i++)\n    "
               "ncclAllReduce(buffer[order[i]], buffer[order[i]], count[order[i]], ncclFloat, "
               "ncclSum, comm, stream);\nncclGroupEnd();\n",
    .fix_c = "ncclGroupStart();\nfor (int i = 0; i < 2; i++)\n    ncclAllReduce(buffer[i], "
             "buffer[i], count[i], ncclFloat, ncclSum, comm, stream);\nncclGroupEnd();\n",
    .fix_torch = "for name in sorted(tensors):        # one order on every rank, not that of a set "
                 "or of arrival\n    dist.all_reduce(tensors[name])\n",
};
