/* different_operators.c: DC104: the check for reduction operators that differ; the comparison is
 * different_operations.c's. */
#include "analyzer/check.h"
#include "lib/trace/lacks.h"

const struct check check_different_operators = {
    .code = DC104,
    .name = "different-operators",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_REDOP | LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .title = "reduction operators differ",
    .text = "Every rank must pass the same reduction operator.\n\n"
            "It shows as wrong results that differ from run to run; rarely as a hang. Operators of "
            "ncclRedOpCreatePreMulSum are not compared with each other: NCCL creates them on each "
            "rank, so their handles and scalars may differ between ranks.",
    .causes = CAUSES(
        {"An average on some ranks and a sum that is divided afterwards on others: a gradient "
         "hook, or an option that only some configurations have.",
         "One side is avg, the other sum, in a gradient bucket."},
        {"The operator comes from local data: max for the ranks that measure a time, sum for those "
         "that count.",
         "The two source lines are different; the operation is small and is not a gradient "
         "bucket."}),
    .source = "NCCL 2.29 user guide, \"Collective Communication Functions\"; NCCL 2.28 nccl.h, "
              "ncclRedOpCreatePreMulSum: operators are local to a communicator's rank",
    .example = "ncclAllReduce(x, x, n, ncclFloat, rank ? ncclSum : ncclAvg, comm, stream);\n",
    .fix_c = "ncclAllReduce(x, x, n, ncclFloat, ncclAvg, comm, stream);\n",
    .fix_torch = "dist.all_reduce(x, op=dist.ReduceOp.AVG)    # the same op on every rank\n",
};
