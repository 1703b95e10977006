/* Every rank asks for a communicator with more channels at least than at most; NCCL refuses it, and all of them end.
 * expect: DC111 certain ranks=0-2 place=here
 * ends: error */
#include "tests/suite/suite.h"

static void all_end_after_refusal(struct rank *me)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.minCTAs = 4;
    config.maxCTAs = 2;
#ifdef TWIN
    config.maxCTAs = 8;
#endif
    NCCL(ncclCommInitRankConfig(&me->comm, me->ranks, suite_id(me, 0), me->rank, &config)); /* here */
}

SUITE_CASE(.run = all_end_after_refusal, .ranks = 3, .layout = PROCESSES, .bare = true);
