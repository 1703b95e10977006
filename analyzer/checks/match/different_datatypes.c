/* different_datatypes.c: DC103: the check for datatypes that differ; the comparison is
 * different_operations.c's. */
#include "analyzer/check.h"
#include "lib/trace/lacks.h"

const struct check check_different_datatypes = {
    .code = DC103,
    .name = "different-datatypes",
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .weak_without = LOSS_CALLS,
    .needs = LACKS_DATATYPE | LACKS_CALLS,
    .explains = CODES(CODES_HANGS),
    .explains_later = CODES(CODES_DIVERGED),
    .title = "datatypes differ",
    .text =
        "Every rank must pass the same datatype to a collective; NCCL does not compare them.\n\n"
        "It shows as garbage values, or as a hang if the sizes differ.\n\n"
        "It is certain that the types differ. Calls that only move bytes (Broadcast, AllGather) "
        "may still work if the types have the same size, but NCCL does not guarantee it.",
    .causes = CAUSES({"Mixed precision that only some ranks switch on (autocast, model.half(), a "
                      "configuration per host).",
                      "One side is float16 or bfloat16; print next(model.parameters()).dtype on "
                      "every rank before DDP.",
                      {.difference = DIFFERENCE_HALF}},
                     {"A checkpoint that has a different datatype on the rank that loads it.",
                      "The fault begins after a resume, and rank 0 differs from the others."},
                     {"A metric that is an integer on one rank and a float on another (the empty "
                      "case of a branch).",
                      "The operation is small and is not a gradient bucket.",
                      {.difference = DIFFERENCE_INTEGER}}),
    .source = "NCCL 2.29 user guide, \"Collective Operations\": the same datatype on every rank",
    .example = "ncclDataType_t t = rank == 1 ? ncclHalf : ncclFloat;\nncclAllReduce(x, x, n, t, "
               "ncclSum, comm, stream);\n",
    .fix_c = "ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_torch = "model = model.to(torch.float32)    # on every rank, before "
                 "DistributedDataParallel(model)\n",
};
