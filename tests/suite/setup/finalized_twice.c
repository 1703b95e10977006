/* Two owners of a communicator finalize it.
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

static void finalized_twice(struct rank *me)
{
    NCCL(ncclCommFinalize(me->comm));
#ifndef TWIN
    (void)ncclCommFinalize(me->comm); /* here */
#endif
}

SUITE_CASE(.run = finalized_twice, .ranks = 2, .layout = THREADS);
