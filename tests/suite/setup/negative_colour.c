/* The ranks that want no group give colour -2 where NCCL_SPLIT_NOCOLOR (-1) is meant; NCCL refuses it.
 * expect: DC111 certain ranks=0-1 place=here */
#include "tests/suite/suite.h"

static void negative_colour(struct rank *me)
{
    ncclComm_t group = NULL;
#ifdef TWIN
    int none = NCCL_SPLIT_NOCOLOR;
#else
    int none = -2;
#endif

    (void)ncclCommSplit(me->comm, none, me->rank, &group, NULL); /* here */
}

SUITE_CASE(.run = negative_colour, .ranks = 2, .layout = PROCESSES);
