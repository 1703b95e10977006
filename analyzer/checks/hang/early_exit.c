/* early_exit.c: DC206: the check for a rank that exits while others still wait for it;
 * hang_report.c finds it. */
#include "analyzer/check.h"
#include "analyzer/checks/hang/left_first.h"
#include "lib/trace/lacks.h"

const struct check check_early_exit = {
    .code = DC206,
    .name = "early-exit",
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_END,
    .explains = CODES(CODES_HANGS),
    .title = "a rank finished early (uneven inputs)",
    .text =
        "Some ranks finished (destroyed the communicator, or exited with status 0); another "
        "continues and issues operations that they will never join.\n\n"
        "It shows as a hang at the end of an epoch. Or the launcher terminates the others while "
        "they compute, as mpirun does when a rank exits without MPI_Finalize: then it is "
        "reported when the job is over, as possible.\n\n"
        "A certain one can be wrong only if the last records of a rank were lost (DC901), a "
        "possible one if somebody terminated the job right after the rank had left.",
    .causes = CAUSES(
        {"Inputs of uneven length: the data set is not divisible by the number of ranks, or "
         "filtered per rank.",
         "print(len(loader)) on every rank."},
        {"An IterableDataset that is not sharded by rank and worker, or shards of different size.",
         "len() does not exist; count the batches. A sampler has no effect on an IterableDataset."},
        {"Join used with collectives that it does not shadow: it covers those of DDP and ZeRO, but "
         "not metrics and barriers of the loop.",
         "The operation that waits is not a gradient bucket."},
        {"Early stopping decided by each rank for itself.",
         "The rank left in the middle of an epoch."}),
    .source = "PyTorch 2.10 documentation, torch.distributed.algorithms.Join",
    .example = "for (int i = 0; i < batches_of(rank); i++)\n    ncclAllReduce(x, x, n, ncclFloat, "
               "ncclSum, comm, stream);\nncclCommDestroy(comm);\n",
    .fix_c =
        "for (int i = 0; i < batches_least; i++)      /* the least of all ranks, agreed on by an "
        "AllReduce(min) */\n    ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm, stream);\n",
    .fix_torch = "with Join([model]):        # torch.distributed.algorithms.join\n    for batch in "
                 "loader: ...\n",
    .on = {[EVENT_FINISH] = left_first_on_finish},
};
