/* Rank 3 is left out by ncclCommShrink; rank 1, which is to stay, is still loading data and does not call it.
 * expect: DC109 possible ranks=1
 * ends: hang */
#include "tests/suite/suite.h"

enum { FOREVER_MS = 3600 * 1000 };

static void survivor_does_not_shrink(struct rank *me)
{
    int excluded[] = {3};
    ncclComm_t rest;

    if (me->rank == 3)
        return;
#ifndef TWIN
    if (me->rank == 1)
        suite_nap_ms(FOREVER_MS);
#endif
    NCCL(ncclCommShrink(me->comm, excluded, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    NCCL(ncclCommDestroy(rest));
}

SUITE_CASE(.run = survivor_does_not_shrink, .ranks = 4, .layout = PROCESSES);
