/* stuck_setup.c: DC209: the check for ranks that never finish creating or destroying a
 * communicator; hang_report.c finds it. */
#include "analyzer/check.h"
#include "lib/trace/lacks.h"

const struct check check_stuck_setup = {
    .code = DC209,
    .name = "stuck-setup",
    .family = FAMILY_HANG,
    .severity = SEVERITY_ERROR,
    .scope = SCOPE_JOB,
    .needs = LACKS_SETUP,
    .explains = CODES(DC201, DC205, DC206),
    .title = "stuck while a communicator is created or destroyed",
    .text = "Ranks wait in ncclCommInitRank (or ncclCommFinalize, ncclCommDestroy) for ranks that "
            "have not called it.\n\n"
            "It shows as a hang at the start or the end. It is certain if a missing rank has "
            "terminated or is stuck elsewhere, and possible after a long wait (--hang-after): a "
            "rank without a trace (DC902) may only not have been recorded.\n\n"
            "Usual causes: fewer processes started than WORLD_SIZE says, a rank that failed "
            "before, an ncclUniqueId that did not reach all ranks.",
    .example = "if (rank != 3)\n    ncclCommInitRank(&comm, 4, id, rank);\n",
    .fix_c = "ncclCommInitRank(&comm, 4, id, rank);        /* on all four */\n",
    .fix_torch =
        "torchrun --nnodes=1 --nproc_per_node=4 train.py    # as many processes as WORLD_SIZE\n",
};
