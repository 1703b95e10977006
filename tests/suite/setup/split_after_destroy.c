/* A sub-group is split from a communicator that is gone.
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

static void split_after_destroy(struct rank *me)
{
    ncclComm_t group = NULL, parent = me->comm;

#ifdef TWIN
    NCCL(ncclCommSplit(parent, 0, me->rank, &group, NULL));
    NCCL(ncclCommDestroy(group));
#endif
    NCCL(ncclCommDestroy(parent));
#ifndef TWIN
    (void)ncclCommSplit(parent, 0, me->rank, &group, NULL); /* here */
#endif
    me->comm = NULL;
}

SUITE_CASE(.run = split_after_destroy, .ranks = 2, .layout = PROCESSES);
