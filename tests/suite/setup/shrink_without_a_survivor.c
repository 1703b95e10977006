/* Rank 3 failed and left; the others shrink the communicator, but rank 2 does not: rank 3, which they leave out, waits for
 * nothing.
 * expect: DC109 possible ranks=0-1+2 place=here
 * ends: hang */
#include "tests/suite/suite.h"

static void shrink_without_a_survivor(struct rank *me)
{
    int failed = 3;
    ncclComm_t smaller;

    if (me->rank == failed) {
        NCCL(ncclCommAbort(me->comm));
        me->comm = NULL;
        return;
    }
#ifndef TWIN
    if (me->rank == 2)
        suite_nap_ms(3600 * 1000);
#endif
    NCCL(ncclCommShrink(me->comm, &failed, 1, &smaller, NULL, NCCL_SHRINK_ABORT)); /* here */
    NCCL(ncclCommDestroy(smaller));
}

SUITE_CASE(.run = shrink_without_a_survivor, .ranks = 4, .layout = PROCESSES);
