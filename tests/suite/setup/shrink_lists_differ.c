/* After a failure of rank 2 the ranks that stay do not agree on who failed.
 * expect: DC109 certain ranks=0+1 place=shrink_lists_differ
 * ends: hang */
#include "tests/suite/suite.h"

static void shrink_lists_differ(struct rank *me)
{
    ncclComm_t smaller;
#ifdef TWIN
    int failed[] = { 2 };
#else
    int failed[] = { me->rank == 1 ? 0 : 2 };
#endif

    if (me->rank != 2) {
        NCCL(ncclCommShrink(me->comm, failed, 1, &smaller, NULL, NCCL_SHRINK_DEFAULT));
        NCCL(ncclCommDestroy(smaller));
    }
}

SUITE_CASE(.run = shrink_lists_differ, .ranks = 3, .layout = PROCESSES);
