/* Rank 1 leaves out the split for the final evaluation, and ends: it skipped a call, not an iteration.
 * expect: DC109 certain ranks=1
 * says: never called it
 * fix: ncclCommSplit
 * ends: hang */
#include "tests/suite/suite.h"

static void split_left_out_at_end(struct rank *me)
{
    ncclComm_t evaluation;

#ifndef TWIN
    if (me->rank == 1)
        return;
#endif
    NCCL(ncclCommSplit(me->comm, 0, me->rank, &evaluation, NULL));
    NCCL(ncclCommDestroy(evaluation));
}

SUITE_CASE(.run = split_left_out_at_end, .ranks = 3, .layout = PROCESSES);
