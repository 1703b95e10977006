/* Both a trainer and its logger destroy the communicator that they share.
 * expect: DC111 certain ranks=0-2 place=here */
#include "tests/suite/suite.h"

static void destroyed_twice(struct rank *me)
{
    ncclComm_t trainer = me->comm, logger = me->comm;

    NCCL(ncclCommDestroy(trainer));
#ifndef TWIN
    (void)ncclCommDestroy(logger); /* here */
#endif
    (void)logger;
    me->comm = NULL;
}

SUITE_CASE(.run = destroyed_twice, .ranks = 3, .layout = THREADS);
