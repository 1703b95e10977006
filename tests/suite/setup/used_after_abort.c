/* Rank 0 gives up by ncclCommAbort, and its clean-up code still finalizes the communicator.
 * expect: DC111 certain ranks=0 place=here */
#include "tests/suite/suite.h"

static void used_after_abort(struct rank *me)
{
    NCCL(ncclCommAbort(me->comm));
#ifndef TWIN
    if (me->rank == 0)
        (void)ncclCommFinalize(me->comm); /* here */
#endif
    me->comm = NULL;
}

SUITE_CASE(.run = used_after_abort, .ranks = 2, .layout = PROCESSES);
