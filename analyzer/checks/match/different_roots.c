/* different_roots.c: DC105: the check for roots that differ; the comparison is
 * different_operations.c's. */
#include "analyzer/check.h"
#include "lib/trace/lacks.h"

const struct check check_different_roots = {
    .code = DC105,
    .name = "different-roots",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_ROOT | LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_DIVERGED),
    .title = "roots differ",
    .text = "Broadcast, Reduce, Gather and Scatter need the same root on every rank.\n\n"
            "It shows as a hang, or as ranks that keep old data.\n\n"
            "It can be wrong only if records were lost (DC901).",
    .causes = CAUSES(
        {"The rank within the group is passed where the global rank is expected, or the reverse "
         "(PyTorch's src and dst are global ranks, also in a subgroup).",
         "The two roots differ by the group's first rank."},
        {"A root that is computed from local data: the rank with the best metric, the one that has "
         "the checkpoint.",
         "The value differs between ranks: reduce it first, then use the result on all of them."}),
    .source = "NCCL 2.29 user guide, \"Collective Communication Functions\": root is a rank of the "
              "communicator, the same in every call of the operation",
    .example = "ncclBroadcast(x, x, n, ncclFloat, rank, comm, stream);      /* each rank names "
               "itself */\n",
    .fix_c = "ncclBroadcast(x, x, n, ncclFloat, 0, comm, stream);\n",
    .fix_torch = "dist.broadcast(x, src=0)    # src is the global rank, also in a subgroup\n",
};
